/** Checks that the manifest excerpts in docs/containers.md occur in the manifests, in any order. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { Ajv } from 'ajv';
import { expect } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { parseCommandLine } from '../../src/cli/commands.ts';
import { type Check, root } from './docs-page.ts';

const folder = join(root, 'deploy', 'kubernetes');

/** Every document in the folder, with its file. */
export function readManifests(): { readonly file: string; readonly value: unknown }[] {
  const files = readdirSync(folder).filter((name) => name.endsWith('.yaml'));
  return files.flatMap((file) =>
    parseAllDocuments(readFileSync(join(folder, file), 'utf8')).map((document) => {
      expect(document.errors, file).toEqual([]);
      return { file, value: document.toJS() as unknown };
    }),
  );
}

/** Whether the part is contained anywhere in the value. A list must contain all elements of the part's list. */
function holds(value: unknown, part: unknown): boolean {
  return fits(value, part) || (isObject(value) && Object.values(value).some((one) => holds(one, part)));
}

function fits(value: unknown, part: unknown): boolean {
  if (!isObject(part) || !isObject(value)) return isDeepStrictEqual(value, part);
  if (Array.isArray(part)) {
    const isList = Array.isArray(value) && part.some(isObject);
    return isList ? part.every((one) => value.some((other) => fits(other, one))) : isDeepStrictEqual(value, part);
  }
  return Object.entries(part).every(([key, one]) => fits((value as Record<string, unknown>)[key], one));
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

const manifest: Check = (text) => {
  const shown: unknown = parse(text.replaceAll(/http:\/\/toolgate:\d+/g, 'http://toolgate:8808'));
  expect(readManifests().some(({ value }) => holds(value, shown))).toBe(true);
};

/** Commands of Docker in docs/deploy.md: the files, services and commands of Toolgate in them exist. */
const docker: Check = (text) => {
  const folder = join(root, 'deploy', 'docker');
  const { services } = parse(readFileSync(join(folder, 'docker-compose.yml'), 'utf8'), { merge: true }) as {
    services: object;
  };
  for (const line of text.trim().split('\n')) {
    const [, file] = /^(?:cd|cp|docker build -f) (\S+)/.exec(line) ?? [];
    if (file !== undefined)
      expect(
        [root, folder].some((from) => existsSync(join(from, file))),
        line,
      ).toBe(true);
    const [, service] = /^docker compose (?:exec|cp \S+) (\w+)/.exec(line) ?? [];
    if (service !== undefined) expect(Object.keys(services), line).toContain(service);
    const [, command] = /^docker compose exec \w+ toolgate (.*)$/.exec(line) ?? [];
    if (command !== undefined) expect(() => parseCommandLine(command.split(' ')), line).not.toThrow();
    expect(line).toMatch(/^(?:cd|cp|docker (?:compose (?:up|exec|cp)|build|run)) /);
  }
};

/** Commands of Helm and kubectl in docs/deploy.md: the files in them exist, and the values that they set. */
const helm: Check = (text) => {
  const values = parse(readFileSync(join(root, 'deploy', 'helm', 'toolgate', 'values.yaml'), 'utf8')) as object;
  for (const line of text
    .trim()
    .replaceAll(/\\\n\s*/g, '')
    .split('\n')) {
    expect(line).toMatch(/^(?:helm|kubectl) /);
    for (const [path] of line.matchAll(/deploy\/\S+/g)) expect(existsSync(join(root, path)), line).toBe(true);
    for (const [, key] of line.matchAll(/--set ([\w.]+)=/g)) {
      const value = key!.split('.').reduce<unknown>((from, name) => (from as Record<string, unknown>)[name], values);
      expect(value, line).toBeDefined();
    }
  }
};

/** Commands that repeat a measurement: they take too long here, and their scripts exist. */
const repeat: Check = (text) => {
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { scripts: object };
  for (const line of text.trim().split('\n')) {
    const [, script, option] = /^npm run (\S+)(?: -- --(\w+).*)?$/.exec(line) ?? [];
    expect(Object.keys(scripts), line).toContain(script);
    if (option !== undefined)
      expect(readFileSync(join(root, 'bench/peers/run.mjs'), 'utf8'), line).toContain(`${option}: {`);
  }
};

/** Values of the chart in docs/deploy.md: all of them are known to it. */
const chartValues: Check = (text) => {
  const folder = join(root, 'deploy', 'helm', 'toolgate');
  const schema = JSON.parse(readFileSync(join(folder, 'values.schema.json'), 'utf8')) as object;
  const validate = new Ajv({ strict: false }).compile(schema);
  validate(parse(text));
  expect(validate.errors).toBe(null);
};

export const manifestChecks: Record<string, Check> = { manifest, docker, helm, repeat, 'values.yaml': chartValues };
