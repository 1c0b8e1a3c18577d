/** The Helm chart, rendered by helm: valid in the oldest and the newest Kubernetes, and its container serves. */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { parse, parseAllDocuments, stringify } from 'yaml';
import { loadConfig } from '../../src/index.ts';
import { startChild } from '../support/child.ts';
import { commandFolder } from '../support/commands.ts';
import { root } from '../support/docs-page.ts';
import { goTool, isMissingGo, isMissingPython, pythonProgram } from '../support/needs.ts';
import { freePort } from '../support/ports.ts';
import { waitFor } from '../support/processes.ts';
import { serverEntry } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';
import { runTool } from '../support/tools.ts';
import { packageVersion } from '../support/version.ts';
import { type Container, createPod, type Manifest, type PodSpec, type Store } from './pods.ts';

const chart = join(root, 'deploy', 'helm', 'toolgate');
const KUBERNETES = ['1.30.0', '1.37.0'];

/** Everything that the chart can make. */
const ALL = {
  replicas: 3,
  redis: { existingSecret: 'toolgate-redis' },
  secrets: ['toolgate-servers'],
  tls: { existingSecret: 'toolgate-tls' },
  ingress: { enabled: true, host: 'tools.example.com', className: 'nginx', tlsSecret: 'tools-tls' },
  autoscaling: { enabled: true, callsInFlight: 50, eventLoopPercent: 60 },
  networkPolicy: {
    from: [{ namespaceSelector: { matchLabels: { name: 'monitoring' } } }],
    egress: [{ to: [{ ipBlock: { cidr: '10.0.0.0/8' } }] }],
  },
  serviceMonitor: {
    enabled: true,
    labels: { release: 'prometheus' },
    tokenSecret: { name: 'toolgate-admin' },
    tlsConfig: { serverName: 'tools.example.com' },
  },
  prometheusRule: { enabled: true },
  dashboard: { enabled: true },
  env: [{ name: 'LOG_LEVEL', value: 'debug' }],
  podAnnotations: { 'example.com/team': 'tools' },
  nodeSelector: { 'kubernetes.io/os': 'linux' },
  tolerations: [{ key: 'tools', operator: 'Exists' }],
  priorityClassName: 'high',
  image: { pullSecrets: [{ name: 'registry' }] },
  config: { controls: [], store: { prefix: 'team' }, agents: { ops: { token: '${OPS_TOKEN}' } } },
};

interface Rendered {
  readonly text: string;
  readonly manifests: readonly Manifest[];
  find<T>(kind: string): Manifest & { readonly spec: T };
}

const helm = (args: string[], values: object = {}) => {
  const file = join(tempFolder({ 'values.yaml': stringify(values) }), 'values.yaml');
  return runTool(goTool('bin', 'helm'), [...args, '--values', file]);
};

async function render(values: object = {}): Promise<Rendered> {
  const { code, stdout, stderr } = await helm(['template', 'tools', chart, '--namespace', 'agents'], values);
  expect([code, stderr]).toEqual([0, '']);
  const manifests = parseAllDocuments(stdout)
    .map((document) => document.toJS() as Manifest | null)
    .filter((one) => one !== null);
  return {
    text: stdout,
    manifests,
    find: (kind) => manifests.find((one) => one.kind === kind) as never,
  };
}

/** Schemas of Kubernetes and of the Prometheus operator, in which unknown keys are mistakes, as kubeconform wants them. */
function schemas(): string {
  const folder = tempFolder();
  const [lib] = readdirSync(join(pythonProgram('deploy'), '..', '..', 'lib'));
  const published = join(
    pythonProgram('deploy'),
    '..',
    '..',
    'lib',
    lib!,
    'site-packages',
    'kubernetes_validate',
    'kubernetes-json-schema',
  );
  for (const version of KUBERNETES) {
    const from = join(published, `v${version}-local-strict`);
    mkdirSync(join(folder, `v${version}`));
    for (const name of readdirSync(from))
      writeFileSync(
        join(folder, `v${version}`, name),
        readFileSync(join(from, name), 'utf8')
          .replaceAll('/api/_definitions.json', '_definitions.json')
          .replace(/,?\s*"\$id": "https:[^"]*"/, ''),
      );
    for (const name of readdirSync(goTool('crds'))) {
      const { spec } = parse(readFileSync(goTool('crds', name), 'utf8')) as {
        spec: { names: { singular: string }; versions: { schema: { openAPIV3Schema: Schema } }[] };
      };
      const schema = spec.versions[0]!.schema.openAPIV3Schema;
      forbidUnknown(schema);
      // Only the Kubernetes schemas describe this.
      schema.properties!.metadata = { type: 'object' };
      writeFileSync(join(folder, `v${version}`, `${spec.names.singular}-monitoring-v1.json`), JSON.stringify(schema));
    }
  }
  return folder;
}

interface Schema {
  readonly type?: string;
  readonly properties?: Record<string, Schema>;
  readonly items?: Schema;
  additionalProperties?: Schema | boolean;
}

function forbidUnknown(schema: Schema): void {
  for (const one of Object.values(schema.properties ?? {})) forbidUnknown(one);
  if (schema.items) forbidUnknown(schema.items);
  if (schema.properties && schema.additionalProperties === undefined) schema.additionalProperties = false;
}

describe.skipIf(isMissingGo() || isMissingPython('deploy'))('the Helm chart', () => {
  let least: Rendered;
  let all: Rendered;
  beforeAll(async () => {
    least = await render();
    all = await render(ALL);
  });

  it('passes helm lint, and has the version of Toolgate', async () => {
    const { code, stdout, stderr } = await helm(['lint', chart, '--strict']);
    expect(code, stdout + stderr).toBe(0);
    const { version, appVersion } = parse(readFileSync(join(chart, 'Chart.yaml'), 'utf8')) as Record<string, string>;
    expect([version, appVersion]).toEqual([packageVersion, packageVersion]);
  });

  it.each(KUBERNETES)('renders what Kubernetes %s accepts, down to every key', async (version) => {
    const location = join(schemas(), '{{.NormalizedKubernetesVersion}}', '{{.ResourceKind}}{{.KindSuffix}}.json');
    const check = (text: string) =>
      runTool(
        goTool('bin', 'kubeconform'),
        ['-strict', '-kubernetes-version', version, '-schema-location', location, '-summary', '-output', 'json'],
        { input: text },
      );
    for (const { text, manifests } of [least, all]) {
      const { code, stdout } = await check(text);
      expect(code, stdout).toBe(0);
      expect((JSON.parse(stdout) as { summary: { valid: number } }).summary.valid).toBe(manifests.length);
    }
    // It would see a key that does not exist, in every kind.
    const wrong = all.manifests.map((manifest) => stringify({ ...manifest, unknownKey: 1 })).join('---\n');
    const { summary } = JSON.parse((await check(wrong)).stdout) as { summary: { invalid: number } };
    expect(summary.invalid).toBe(all.manifests.length);
  });

  it('makes what the values ask for, and no more', () => {
    const kinds = (rendered: Rendered) => rendered.manifests.map(({ kind }) => kind).sort();
    expect(kinds(least)).toEqual(['ConfigMap', 'Deployment', 'NetworkPolicy', 'Service', 'ServiceAccount']);
    expect(kinds(all)).toEqual(
      [
        ...kinds(least),
        'ConfigMap',
        'HorizontalPodAutoscaler',
        'Ingress',
        'PodDisruptionBudget',
        'PrometheusRule',
        'ServiceMonitor',
      ].sort(),
    );
  });

  it('runs as a user without rights, and gives running calls the time to end', () => {
    for (const { spec } of [least.find<Workload>('Deployment'), all.find<Workload>('Deployment')]) {
      const pod = spec.template.spec;
      const [container] = pod.containers as [Container & { readonly lifecycle: object }];
      expect(pod).toMatchObject({
        automountServiceAccountToken: false,
        securityContext: { runAsNonRoot: true, runAsUser: 1000, seccompProfile: { type: 'RuntimeDefault' } },
        // The pause, the drain, and ten seconds.
        terminationGracePeriodSeconds: 35,
      });
      expect(container.securityContext).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      });
      expect(container.lifecycle).toEqual({ preStop: { sleep: { seconds: 5 } } });
      for (const probe of [container.livenessProbe, container.readinessProbe, container.startupProbe])
        expect(probe!.httpGet.port).toBe('mcp');
    }
    expect(all.text).toContain('maxUnavailable: 0');
    // The autoscaler decides about the number.
    expect(all.find<{ replicas?: number }>('Deployment').spec.replicas).toBeUndefined();
  });

  it('selects its own pods everywhere, and only them', () => {
    const { labels } = all.find<Workload>('Deployment').spec.template.metadata;
    const selectors = [
      all.find<Workload>('Deployment').spec.selector!.matchLabels,
      all.find<{ selector: Record<string, string> }>('Service').spec.selector,
      all.find<{ podSelector: { matchLabels: Record<string, string> } }>('NetworkPolicy').spec.podSelector.matchLabels,
      all.find<Workload>('PodDisruptionBudget').spec.selector!.matchLabels,
    ];
    for (const selector of selectors) {
      expect(selector).toEqual({ 'app.kubernetes.io/name': 'toolgate', 'app.kubernetes.io/instance': 'tools' });
      expect(labels).toMatchObject(selector);
    }
    // Prometheus finds the Service by the same labels.
    const monitor = all.find<Workload>('ServiceMonitor').spec.selector!.matchLabels;
    expect(all.find('Service').metadata.labels).toMatchObject(monitor);
  });

  it.each([
    [{ replicas: 2 }, 'Several replicas share their sessions through Redis'],
    [{ autoscaling: { enabled: true } }, 'Several replicas share their sessions through Redis'],
    [
      { replicas: 2, redis: { url: 'redis://r' }, data: { existingClaim: 'x' } },
      'data.existingClaim is for one replica',
    ],
    [{ redis: { url: 'redis://r', existingSecret: 'x' } }, 'only one of redis.url and redis.existingSecret'],
    [{ config: { store: 'redis://:secret@r' } }, 'in place of config.store.url'],
    [{ config: { store: { prefix: 'x' } } }, 'config.store needs redis.existingSecret'],
    [{ ingress: { enabled: true } }, 'Set ingress.host'],
    [{ redis: { url: 'redis://r' }, autoscaling: { enabled: true, cpuPercent: 0 } }, 'autoscaling needs one of'],
    [{ redis: { url: 'redis://r' }, autoscaling: { enabled: true, minReplicas: 20 } }, 'more than maxReplicas'],
    [{ replica: 2 }, "additional properties 'replica' not allowed"],
    [{ redis: { url: 'http://r' } }, '/redis/url'],
    [{ replicas: '2' }, '/replicas'],
  ])('refuses %j', async (values, message) => {
    const { code, stderr } = await helm(['template', 'tools', chart], values);
    expect(code).toBe(1);
    expect(stderr).toContain(message);
  });

  it('keeps the address of Redis out of the configuration', async () => {
    const { text, manifests } = await render({ replicas: 2, redis: { url: 'redis://:very-secret@redis:6379' } });
    expect(text.match(/very-secret/g)).toHaveLength(1);
    expect(manifests.find(({ kind }) => kind === 'Secret')).toMatchObject({
      stringData: { url: 'redis://:very-secret@redis:6379' },
    });
  });

  it('makes configurations that Toolgate accepts', async () => {
    const secure = await render({
      ...ALL,
      redis: {},
      replicas: 1,
      autoscaling: {},
      config: { agents: ALL.config.agents },
    });
    for (const { manifests } of [least, secure]) {
      const { data } = manifests.find(
        ({ kind, metadata }) => kind === 'ConfigMap' && metadata.name === 'tools-toolgate',
      )!;
      const cwd = tempFolder(data);
      const { http } = await loadConfig({
        path: join(cwd, 'toolgate.yaml'),
        cwd,
        env: { OPS_TOKEN: 'x'.repeat(32), REDIS_URL: 'redis://:secret@redis:6379' },
      });
      expect([http.host, http.port, http.drain]).toEqual(['0.0.0.0', 8808, 20_000]);
      expect(http.tls === null).toBe(manifests === least.manifests);
    }
  });

  it('has a container that serves, is ready and stops', async () => {
    const token = 'a-token-of-this-test-0123456789';
    const { manifests, find } = await render({
      secrets: ['toolgate-servers'],
      config: { controls: [], servers: { up: serverEntry('basic') } },
    });
    const spec = find<Workload>('Deployment').spec.template.spec;
    const configMaps: Store = Object.fromEntries(
      manifests.filter(({ kind }) => kind === 'ConfigMap').map(({ metadata, data }) => [metadata.name, data!]),
    );
    const path = `${commandFolder()}:${process.env.PATH}`;
    const pod = createPod(spec, configMaps, {}, path, []);
    const { command, env } = pod.run(spec.containers[0]!);
    const port = await freePort();
    const gateway = startChild(command[0]!, command.slice(1), {
      cwd: tempFolder(),
      // `secrets` gives the container every key of a Secret.
      env: { ...env, BEARER_TOKEN: token, CORE_PORT: String(port) },
    });
    const status = (probe: Container['readinessProbe']) =>
      fetch(`http://127.0.0.1:${port}${probe!.httpGet.path}`).then(
        ({ status }) => status,
        () => 0,
      );
    await waitFor(async () => (await status(spec.containers[0]!.readinessProbe)) === 200, 60_000);
    expect(await status(spec.containers[0]!.livenessProbe)).toBe(200);
    expect((await gateway.stop()).code).toBe(0);
  });
});

interface Workload {
  readonly selector?: { readonly matchLabels: Record<string, string> };
  readonly template: { readonly metadata: { readonly labels: Record<string, string> }; readonly spec: PodSpec };
}

describe.skipIf(isMissingPython('deploy'))('hadolint', () => {
  it('accepts the Dockerfiles', async () => {
    const files = ['core.Dockerfile', 'manager.Dockerfile'].map((name) => join(root, 'deploy', 'docker', name));
    // Versions of Debian packages are those of the day of the image, so that security updates get in.
    const { code, stdout } = await runTool(pythonProgram('deploy', 'hadolint'), ['--ignore', 'DL3008', ...files]);
    expect([code, stdout]).toEqual([0, '']);
  });
});
