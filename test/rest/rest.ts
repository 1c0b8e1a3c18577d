/** A gateway with servers of every kind, called over REST. */
import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { withMembers } from '../support/child.ts';
import { type HttpGateway, startHttp } from '../support/gateway.ts';
import { installer } from '../support/installer.ts';
import { waitFor } from '../support/processes.ts';
import { basePython } from '../support/python.ts';
import { serverEntry } from '../support/server.ts';
import { type Files, tempFolder } from '../support/temp.ts';

export interface RestReply {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: a tool may return anything
  readonly json: any;
}

export type Ask = (path: string, options?: RequestInit & { readonly args?: unknown }) => Promise<RestReply>;

export interface RestGateway extends HttpGateway {
  readonly ask: Ask;
  /** Posts arguments to a tool. */
  readonly call: (path: string, args?: unknown, headers?: Record<string, string>) => Promise<RestReply>;
}

/** Waits for the namespace of Python tools if there are any among the files. Their environment already exists. */
export async function startRest(
  config: object,
  files: Files = {},
  env: Record<string, string> = {},
): Promise<RestGateway> {
  const cwd = tempFolder({ 'toolgate.json': JSON.stringify(config), ...files });
  // The variables that the environment was built with.
  const folders = Object.keys(files).map((path) => path.split('/')[2]!);
  if (Object.keys(files).some((path) => path.endsWith('.py'))) {
    const [python] = (await basePython()).command;
    symlinkSync(python!.slice(0, python!.indexOf('/venvs/') + '/venvs'.length), join(cwd, '.toolgate/venvs'));
  }
  const gateway = await startHttp({ cwd, env: { ...installer, ...env } });
  const ask: Ask = async (path, options = {}) => {
    const response = await fetch(gateway.origin + path, options);
    const text = await response.text();
    return { status: response.status, headers: response.headers, text, json: parse(text) };
  };
  const call = (path: string, args: unknown = {}, headers = {}) =>
    ask(path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: typeof args === 'string' ? args : JSON.stringify(args),
    });
  const headers = { authorization: `Bearer ${env.BEARER_TOKEN ?? ''}` };
  for (const folder of folders)
    await waitFor(async () => (await ask(`/ns/${folder}/tools`, { headers })).json?.length > 0, 30_000);
  return withMembers(gateway, { ask, call });
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Arguments for the `raw` tool of basic.mjs, which answers with exactly this. */
export const raw = (result: unknown) => ({ json: typeof result === 'string' ? result : JSON.stringify(result) });

export const basic = (...flags: string[]) => serverEntry('basic', ...flags);

export const TYPESCRIPT = `
import { z } from 'zod';
import { setTimeout as sleep } from 'node:timers/promises';

const person = z.object({ name: z.string(), age: z.number().int().min(0).optional() }).describe('Somebody');

export const add = {
  description: 'Adds two numbers.',
  inputSchema: z.object({ a: z.number(), b: z.number().default(1) }),
  outputSchema: z.number(),
  execute: ({ a, b }) => a + b,
};
export const greet = {
  title: 'A greeting',
  description: 'Greets somebody.',
  inputSchema: z.object({ person }),
  outputSchema: z.object({ text: z.string() }),
  execute: ({ person }) => ({ text: 'Hello ' + person.name }),
};
export const fails = { description: 'Fails.', inputSchema: z.object({}), execute: () => { throw new Error('no luck'); } };
export const slow = { description: 'Takes long.', inputSchema: z.object({}), timeoutMs: 200, execute: () => sleep(60_000) };
export const needs = {
  description: 'Needs a package that is not there.',
  inputSchema: z.object({}),
  execute: async () => { await import('not-' + 'there'); },
};
`;

export const PYTHON = `
import asyncio
from typing import Optional
from pydantic import BaseModel
from fastmcp.tools import tool

class Node(BaseModel):
    name: str
    children: list["Node"] = []

class Person(BaseModel):
    name: str
    age: Optional[int] = None

@tool
def add(a: int, b: int = 1) -> int:
    """Adds two numbers."""
    return a + b

@tool
def greet(person: Person) -> dict:
    """Greets somebody."""
    return {"text": f"Hello {person.name}"}

@tool
def count(tree: Node) -> int:
    """Counts the nodes of a tree."""
    return 1 + sum(count(child) for child in tree.children)

@tool
def fails() -> str:
    """Fails."""
    raise ValueError("no luck")

@tool
def nothing() -> None:
    """Returns nothing."""
`;
