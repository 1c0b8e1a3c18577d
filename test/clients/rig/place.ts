/** A home folder for one run of a client: an empty HOME, the command `toolgate`, the demo, and a model. Nothing leads outside. */
import { mkdirSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { childEnv } from '../../support/child.ts';
import { atEnd } from '../../support/cleanup.ts';
import { shim } from '../../support/commands.ts';
import { bin, startHttp } from '../../support/gateway.ts';
import { tempFolder, writeFiles } from '../../support/temp.ts';
import { demoConfig } from './demo.ts';
import { type ScriptedModel, startModel } from './model.ts';
import { remember } from './remember.ts';
import { readTee, recordHttp, type Said } from './wire.ts';

export type Transport = 'http' | 'stdio';

export interface Place {
  readonly transport: Transport;
  readonly home: string;
  /** The folder that the client works in. */
  readonly work: string;
  readonly model: ScriptedModel;
  /** The address of the gateway; null for stdio. */
  readonly url: string | null;
  /** How a client starts the gateway; null for HTTP. */
  readonly command: readonly string[] | null;
  readonly env: Record<string, string>;
  /** The text of a page with its example address and paths replaced by those of this place. */
  real(text: string): string;
  /** What the client and the gateway have said so far. */
  said(): readonly Said[];
}

const tee = fileURLToPath(new URL('tee.mjs', import.meta.url));

/** With the origin of a running gateway, the client is given that instead of one of its own. */
export async function openPlace(transport: Transport, running?: string): Promise<Place> {
  const home = tempFolder();
  const [work, programs, log] = [join(home, 'work'), join(home, 'bin'), join(home, 'said.jsonl')];
  const config = join(home, 'toolgate', 'tools.toml');
  mkdirSync(work);
  writeFiles(home, { 'toolgate/tools.toml': demoConfig(join(home, 'data')) });
  shim(
    programs,
    'toolgate',
    `TOOLGATE_SHARED=0 exec "${process.execPath}" "${tee}" "${log}" "${process.execPath}" "${bin}" "$@"`,
  );
  const model = await startModel(remember);
  atEnd(() => model.close());
  const wire = transport === 'http' ? await record(running ?? (await serveDemo(home, config))) : undefined;
  const proxies = ['HTTP_PROXY', 'HTTPS_PROXY', 'http_proxy', 'https_proxy'].map((name) => [name, model.origin]);
  return {
    transport,
    home,
    work,
    model,
    url: wire ? `${wire.origin}/mcp` : null,
    command: wire ? null : [join(programs, 'toolgate'), '--config', config],
    env: childEnv({
      ...Object.fromEntries(proxies),
      NO_PROXY: '127.0.0.1,localhost',
      no_proxy: '127.0.0.1,localhost',
      HOME: home,
      PATH: `${programs}:${process.env.PATH}`,
    }),
    real: (text) =>
      text
        .replaceAll('http://127.0.0.1:8808', wire?.origin ?? '')
        .replaceAll(/(?:~|\/home\/you)\/toolgate\/tools\.toml/g, config),
    said: () => wire?.said() ?? readTee(log),
  };
}

/** The demo over HTTP; its origin. */
export async function serveDemo(home = tempFolder(), config = join(home, 'tools.toml')): Promise<string> {
  writeFiles(dirname(config), { [basename(config)]: demoConfig(join(home, 'data')) });
  return (await startHttp({ cwd: home, args: ['--config', config] })).origin;
}

async function record(origin: string) {
  const wire = await recordHttp(origin);
  atEnd(() => wire.close());
  return wire;
}
