/** Checks that the manifest excerpts in docs/containers.md occur in the manifests, in any order. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
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

export const manifestChecks: Record<string, Check> = { manifest, docker };
