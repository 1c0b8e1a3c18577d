/** deploy/kubernetes: the manifests are valid, agree with each other and with the gateway, and their commands work. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { parse as parseToml } from 'smol-toml';
import { beforeAll, describe, expect, it } from 'vitest';
import { parse as parseYaml } from 'yaml';
import { loadConfig } from '../../src/index.ts';
import { type Child, type Exit, startChild } from '../support/child.ts';
import { commandFolder } from '../support/commands.ts';
import { openPipe } from '../support/connection.ts';
import { root } from '../support/docs-page.ts';
import { readManifests } from '../support/manifests.ts';
import { freePort } from '../support/ports.ts';
import { waitFor } from '../support/processes.ts';
import { gitRepository } from '../support/repository.ts';
import { tempFolder } from '../support/temp.ts';
import { runTool } from '../support/tools.ts';
import { isWide } from '../support/wide.ts';
import { type Container, createPod, type Manifest, type Pod, type PodSpec, project, type Store } from './pods.ts';

const folder = join(root, 'deploy', 'kubernetes');
const read = (name: string) => readFileSync(join(folder, name), 'utf8');
const documents = readManifests().map(({ file, value }) => ({ file, value: value as Manifest }));
const manifests = documents.filter(({ file }) => file !== 'kustomization.yaml').map(({ value }) => value);
const find = <T>(kind: string, name: string) =>
  manifests.find((one) => one.kind === kind && one.metadata.name === name)! as Manifest & { readonly spec: T };

interface Workload {
  readonly selector?: { readonly matchLabels: Record<string, string> };
  readonly template: { readonly metadata: { readonly labels: Record<string, string> }; readonly spec: PodSpec };
}
interface ServiceSpec {
  readonly selector: Record<string, string>;
  readonly ports: readonly { readonly port: number; readonly targetPort: string }[];
}
interface NetworkSpec {
  readonly podSelector: { readonly matchLabels: Record<string, string> };
  readonly ingress: readonly {
    readonly from: readonly { readonly podSelector: { readonly matchLabels: Record<string, string> } }[];
    readonly ports: readonly { readonly port: string }[];
  }[];
}

const deployment = find<Workload>('Deployment', 'toolgate').spec;
const job = find<Workload>('Job', 'user-api-agent').spec;
const service = find<ServiceSpec>('Service', 'toolgate').spec;
const [gatewayContainer] = deployment.template.spec.containers as [Container];
const [agentContainer] = job.template.spec.containers as [Container];
const configMaps: Store = Object.fromEntries(
  manifests.filter(({ kind }) => kind === 'ConfigMap').map(({ metadata, data }) => [metadata.name, data!]),
);
const secrets: Store = {
  'toolgate-servers': { 'github-token': 'ghp_of_nobody' },
  'toolgate-agent': { token: 'a-token-of-the-agent' },
  'toolgate-operator': { key: 'a-key-of-the-operator' },
  'agent-model': { 'api-key': 'a-key-of-the-model' },
};
const task = parseToml(read('task.toml')) as { service: string; description: string };
const commands = commandFolder();
const PATH = `${commands}:${process.env.PATH}`;

/** Runs the command for the task from the README and returns the file it generates. */
async function plan(more = ''): Promise<string> {
  const [, script] = /```sh\n(export .*\ntoolgate plan .*) > configmap\.yaml$/m.exec(read('README.md'))!;
  const { code, stdout, stderr } = await runTool('/bin/sh', ['-c', `${script} ${more}`], {
    cwd: folder,
    env: { PATH, DATA_DIR: tempFolder() },
  });
  // The GitHub server has no tools for tests.
  expect(stderr).toMatch(
    /^No gateway runs with .*: the servers are started for this command\.\n(warning: The rule "testing" matches and adds nothing: .*\n)?$/,
  );
  expect(code).toBe(0);
  return stdout;
}

describe('the Kubernetes manifests', () => {
  it('match the Kubernetes 1.37 schema, down to every key', () => {
    const lines = read('../../test/deploy/kubernetes-1.37.jsonl').trim().split('\n');
    const $defs = Object.fromEntries(lines.map((line) => JSON.parse(line) as [string, object]));
    const ajv = new Ajv2020({ strict: false, validateFormats: false, allErrors: true });
    ajv.addSchema({ $id: 'kubernetes', $defs });
    for (const manifest of manifests) {
      const { apiVersion, kind } = manifest;
      const group = apiVersion.replace('.k8s.io', '').replace(/^v1$/, 'core/v1').replace('/', '.');
      const validate = ajv.getSchema(`kubernetes#/$defs/io.k8s.api.${group}.${kind}`)!;
      validate(manifest);
      expect(validate.errors ?? [], `${kind} ${manifest.metadata.name}`).toEqual([]);
    }
    // Makes sure that the schema check detects an unknown key.
    const validate = ajv.getSchema('kubernetes#/$defs/io.k8s.api.core.v1.Container')!;
    expect(validate({ ...gatewayContainer, livenesProbe: {} })).toBe(false);
  });

  it('are all listed in kustomization.yaml, with every image', () => {
    const { resources, images } = parseYaml(read('kustomization.yaml')) as {
      resources: string[];
      images: { name: string }[];
    };
    const files = readdirSync(folder).filter((name) => name.endsWith('.yaml') && name !== 'kustomization.yaml');
    expect([...resources].sort()).toEqual(files.sort());
    const used = [deployment, job].flatMap(({ template: { spec } }) => [...spec.initContainers!, ...spec.containers]);
    expect([...new Set(used.map(({ image }) => image))].sort()).toEqual(images.map(({ name }) => name).sort());
  });

  it('contain the ConfigMap that toolgate plan generates from the task', async () => {
    const made = await plan();
    if (process.env.UPDATE_DOCS) writeFileSync(join(folder, 'configmap.yaml'), made);
    expect(read('configmap.yaml')).toBe(made);
    expect(configMaps['user-api-agent']!['task.txt']).toBe(task.description);
  });

  it('run nothing as root, write only to volumes and mount no cluster token', () => {
    for (const { template } of [deployment, job]) {
      const { initContainers = [], containers, securityContext, automountServiceAccountToken } = template.spec;
      expect(automountServiceAccountToken).toBe(false);
      expect(securityContext).toMatchObject({ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } });
      for (const container of [...initContainers, ...containers]) {
        expect(container.securityContext).toEqual({
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        });
        expect(container.resources).toMatchObject({
          requests: { memory: expect.any(String) },
          limits: { memory: expect.any(String) },
        });
      }
    }
  });

  it('keep the credentials of the servers and of the operator from the agent', () => {
    const names = (spec: PodSpec) =>
      [...JSON.stringify(spec).matchAll(/"(?:secretName|secretKeyRef":\{"name)":"([\w-]+)"/g)].map((match) => match[1]);
    expect(new Set(names(job.template.spec))).toEqual(new Set(['toolgate-agent', 'agent-model']));
    expect(new Set(names(deployment.template.spec))).toEqual(
      new Set(['toolgate-servers', 'toolgate-agent', 'toolgate-operator']),
    );
    const readme = read('README.md');
    for (const [name, keys] of Object.entries(secrets))
      for (const key of Object.keys(keys))
        expect(readme).toMatch(new RegExp(`secret generic ${name} --from-literal=${key}=`));
  });

  it('route traffic to the gateway from agents only', async () => {
    const labels = deployment.template.metadata.labels;
    const [port] = gatewayContainer.ports!;
    const { http } = await loadConfig({
      path: join(folder, 'toolgate.toml'),
      cwd: folder,
      env: { GITHUB_TOKEN: 'x', AGENT_TOKEN: 'x'.repeat(16) },
    });
    expect(port!.containerPort).toBe(http.port);
    expect(deployment.template.spec.terminationGracePeriodSeconds! * 1000).toBeGreaterThan(http.drain);
    for (const selector of [deployment.selector!.matchLabels, service.selector]) expect(labels).toMatchObject(selector);
    expect(service.ports).toMatchObject([{ port: http.port, targetPort: port!.name }]);
    const { podSelector, ingress } = find<NetworkSpec>('NetworkPolicy', 'toolgate').spec;
    expect(labels).toMatchObject(podSelector.matchLabels);
    expect(ingress[0]!.ports).toMatchObject([{ port: port!.name }]);
    expect(job.template.metadata.labels).toMatchObject(ingress[0]!.from[0]!.podSelector.matchLabels);
    expect(labels).not.toMatchObject(ingress[0]!.from[0]!.podSelector.matchLabels);
  });
});

describe('the Kubernetes containers, run as processes', () => {
  let port: number;
  let gatewayPod: Pod;
  let agentPod: Pod;
  let gateway: Child;
  let cloned: Exit;
  let waited: Exit;

  const start = (pod: Pod, container: Container, more: Record<string, string> = {}) => {
    const { command, env } = pod.run(container);
    return startChild(command[0]!, command.slice(1), { cwd: tempFolder(), env: { ...env, ...more } });
  };

  const statusOf = (path: string, host: string) =>
    new Promise<number | undefined>((resolve, reject) => {
      const asking = request({ host: '127.0.0.1', port, path, headers: { host } }, (response) => {
        response.resume();
        resolve(response.statusCode);
      });
      asking.on('error', reject).end();
    });

  beforeAll(async () => {
    port = await freePort();
    const repository = gitRepository({ 'login.ts': 'export const login = 1;\n' });
    const replaced: [string, string][] = [
      ['http://toolgate:8808', `http://127.0.0.1:${port}`],
      ['https://github.com/example/user-api.git', repository],
    ];
    gatewayPod = createPod(deployment.template.spec, configMaps, secrets, PATH, replaced);
    agentPod = createPod(job.template.spec, configMaps, secrets, PATH, replaced);
    // The agent waits from the start, before the gateway runs.
    const waiting = start(agentPod, job.template.spec.initContainers![0]!);
    cloned = await start(gatewayPod, deployment.template.spec.initContainers![0]!).exited;
    gateway = start(gatewayPod, gatewayContainer, { CORE_PORT: String(port) });
    waited = await waiting.exited;
  }, 60_000);

  it('clone, serve and wait, and answer the probes', async () => {
    expect(cloned).toMatchObject({ code: 0 });
    expect(waited).toMatchObject({ code: 0 });
    const { livenessProbe, readinessProbe, startupProbe, ports } = gatewayContainer;
    for (const { httpGet } of [livenessProbe!, readinessProbe!, startupProbe!]) {
      expect(httpGet.port).toBe(ports![0]!.name);
      // By pod address, as probes do, and by the name of the Service, as agents do.
      expect(await statusOf(httpGet.path, '10.1.2.3:8808')).toBe(200);
      expect(await statusOf(httpGet.path, 'toolgate:8808')).toBe(200);
    }
    // Nothing is written to read-only mounts.
    const written = readdirSync(gatewayPod.folders.get('config')!).filter((name) => !name.startsWith('..'));
    expect(written).toEqual(['toolgate.toml']);
    expect(readdirSync(gatewayPod.folders.get('data')!)).toContain('logs');
  });

  it('give the agent its tools, and follow a changed ConfigMap', async () => {
    const { command, env } = agentPod.run(agentContainer);
    expect(command.slice(0, 3)).toEqual(['claude', '-p', task.description]);
    const { mcpServers } = JSON.parse(readFileSync(command[command.indexOf('--mcp-config') + 1]!, 'utf8')) as {
      mcpServers: { toolgate: { command: string; args: string[] } };
    };
    const { command: program, args } = mcpServers.toolgate;
    expect(args[1]).toBe(`http://toolgate:${service.ports[0]!.port}`);
    const real = args.map((word) => word.replace('http://toolgate:8808', `http://127.0.0.1:${port}`));
    const pipe = openPipe(startChild(program, real, { cwd: tempFolder(), env, ending: 'stdin' }));
    await pipe.connect();
    const names = async () => (await pipe.client.listTools()).tools.map(({ name }) => name).sort();
    const planned = (text: string) =>
      Object.entries((parseToml(text) as { exposed_tools: Record<string, string[]> }).exposed_tools)
        .flatMap(([server, tools]) => tools.map((tool) => `${server}_${tool}`))
        .sort();
    const config = configMaps['toolgate-user-api']!['toolgate.toml']!;
    expect(await names()).toEqual(planned(config));
    const path = join(gatewayPod.folders.get('workspace')!, 'login.ts');
    const reading = { name: 'filesystem_read_file', arguments: { path } };
    expect(JSON.stringify(await pipe.client.callTool(reading))).toContain('export const login');

    // The command has run above. In the usual run it does not run again.
    const next = isWide
      ? (parseYaml(await plan('--description "Document the login"')) as Manifest).data!
      : { 'toolgate.toml': config.replace('"push_files"', '"search_code"') };
    project(gatewayPod.folders.get('config')!, next);
    await waitFor(() => pipe.changes('tools') > 0);
    expect(await names()).toEqual(planned(next['toolgate.toml']!));
    expect(await names()).toContain('github_search_code');
    expect(JSON.stringify(await pipe.client.callTool(reading))).toContain('export const login');
  }, 30_000);

  it('reject clients without the token', async () => {
    const child = startChild('toolgate', ['connect', `http://127.0.0.1:${port}`], {
      cwd: tempFolder(),
      env: { PATH, HOME: tempFolder() },
      ending: 'stdin',
    });
    await expect(openPipe(child).connect()).rejects.toThrow(/requires an agent's token/);
    expect((await gateway.stop()).code).toBe(0);
  });
});
