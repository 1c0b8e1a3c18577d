/** Published clients with a model in their loop: how each is configured and started for one prompt. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { NODE_24, type PythonEnvironment, pythonProgram } from '../../support/needs.ts';
import type { Files } from '../../support/temp.ts';
import { clientTool, nodeFor, tool, wideTool } from '../../support/tools.ts';
import { entryFor } from './page.ts';
import type { Place } from './place.ts';
import { PROMPT } from './remember.ts';

/** What one run of a client needs. */
export interface Start {
  readonly argv: readonly string[];
  readonly env?: Record<string, string>;
  /** Configuration files below its home. */
  readonly files?: Files;
  /** Commands that add the entry before the run. */
  readonly before?: readonly (readonly string[])[];
}

export interface Published {
  readonly title: string;
  /** The package that its version is taken from. */
  readonly package: string;
  /** The Python environment that it is installed in; npm otherwise. */
  readonly python?: PythonEnvironment;
  start(place: Place): Start;
}

/** Servers that a client has in addition to Toolgate: see ruler.mjs. */
const ruler = [process.execPath, fileURLToPath(new URL('ruler.mjs', import.meta.url))];
const program = (name: string) => fileURLToPath(new URL(`programs/${name}`, import.meta.url));
/** In the same folder as the packages that it imports. */
const aiSdk = fileURLToPath(new URL('../../tools/clients/with-ai-sdk.mjs', import.meta.url));

const claudeCode: Published = {
  title: 'Claude Code',
  package: '@anthropic-ai/claude-code-linux-x64',
  start(place) {
    const claude = clientTool('@anthropic-ai', 'claude-code-linux-x64', 'claude');
    const add = place.real(entryFor('claude', place.transport)).trim().split(' ').slice(1);
    return {
      before: [
        [claude, ...add],
        [claude, 'mcp', 'add', 'ruler', '--', ...ruler],
      ],
      argv: [claude, '-p', PROMPT, '--allowedTools', 'mcp__toolgate'],
      env: {
        ANTHROPIC_BASE_URL: place.model.origin,
        ANTHROPIC_API_KEY: 'test',
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
        // Without it `-p` does not wait for servers on stdio.
        MCP_CONNECTION_NONBLOCKING: '0',
        MCP_TIMEOUT: '60000',
      },
    };
  },
};

const codex: Published = {
  title: 'Codex',
  package: '@openai/codex-linux-x64',
  start(place) {
    const config = `model = "scripted"
model_provider = "standin"
check_for_update_on_startup = false

[analytics]
enabled = false

[model_providers.standin]
name = "Stand-in"
base_url = "${place.model.origin}/v1"
wire_api = "responses"
env_key = "STANDIN_KEY"

${place.real(entryFor('.codex/config.toml', place.transport))}
startup_timeout_sec = 60

[mcp_servers.ruler]
command = "${ruler[0]}"
args = ["${ruler[1]}"]
required = true
startup_timeout_sec = 60
`;
    const vendor = clientTool('@openai', 'codex-linux-x64', 'vendor', 'x86_64-unknown-linux-musl', 'bin', 'codex');
    return {
      files: { '.codex/config.toml': config },
      argv: [vendor, 'exec', '--skip-git-repo-check', '--dangerously-bypass-approvals-and-sandbox', PROMPT],
      env: { STANDIN_KEY: 'test' },
    };
  },
};

const gemini: Published = {
  title: 'Gemini CLI',
  package: '@google/gemini-cli',
  start(place) {
    const entry = JSON.parse(place.real(entryFor('.gemini/settings.json', place.transport)));
    const settings = {
      mcpServers: { ...entry.mcpServers, ruler: { command: ruler[0], args: ruler.slice(1) } },
      security: { auth: { selectedType: 'gemini-api-key' } },
      privacy: { usageStatisticsEnabled: false },
      general: { enableAutoUpdate: false },
    };
    return {
      files: { '.gemini/settings.json': JSON.stringify(settings) },
      argv: [
        nodeFor('Gemini CLI', '20.0'),
        clientTool('@google', 'gemini-cli', 'bundle', 'gemini.js'),
        '-p',
        PROMPT,
        '--yolo',
        '-m',
        'gemini-2.5-pro',
      ],
      env: {
        GEMINI_API_KEY: 'test',
        GOOGLE_GEMINI_BASE_URL: place.model.origin,
        GEMINI_CLI_TRUST_WORKSPACE: 'true',
        // Otherwise it starts itself again with more memory.
        GEMINI_CLI_NO_RELAUNCH: 'true',
      },
    };
  },
};

const opencode: Published = {
  title: 'opencode',
  package: 'opencode-linux-x64',
  start(place) {
    const entry = JSON.parse(place.real(entryFor('opencode.json', place.transport)));
    const settings = {
      ...entry,
      mcp: { ...entry.mcp, ruler: { type: 'local', command: ruler } },
      autoupdate: false,
      share: 'disabled',
      provider: {
        standin: {
          npm: '@ai-sdk/openai-compatible',
          name: 'Stand-in',
          options: { baseURL: `${place.model.origin}/v1`, apiKey: 'test' },
          models: { scripted: { name: 'Scripted' } },
        },
      },
    };
    return {
      files: { 'work/opencode.json': JSON.stringify(settings) },
      argv: [clientTool('opencode-linux-x64', 'bin', 'opencode'), 'run', '-m', 'standin/scripted', PROMPT],
      env: { OPENCODE_DISABLE_MODELS_FETCH: '1', OPENCODE_DISABLE_AUTOUPDATE: '1' },
    };
  },
};

/** Libraries: a program of ours uses each as its documentation says. */
function library(title: string, name: string, file: string, python?: PythonEnvironment): Published {
  return {
    title,
    package: name,
    ...(python && { python }),
    start(place) {
      const { url, command, model } = place;
      const job = JSON.stringify({ url, command, model: model.origin, prompt: PROMPT });
      return {
        argv: [python ? pythonProgram(python) : NODE_24, file, job],
        env: {
          MCP_USE_ANONYMIZED_TELEMETRY: 'false',
          OPENAI_AGENTS_DISABLE_TRACING: '1',
          FASTMCP_CHECK_FOR_UPDATES: 'off',
        },
      };
    },
  };
}

/** What Claude Desktop and others use that can only start programs, here with the Python SDK as the client. */
const mcpRemote: Published = {
  title: 'mcp-remote',
  package: 'mcp-remote',
  python: 'v1',
  start({ url }) {
    const command = [process.execPath, tool('mcp-remote', 'dist', 'proxy.js'), url];
    return {
      argv: [
        pythonProgram('v1'),
        program('with_sdk.py'),
        JSON.stringify({ url: null, command, model: '', prompt: '' }),
      ],
    };
  },
};

/** Command line clients. */
function commandLine(title: string, name: string, client: string): Published {
  return {
    title,
    package: name,
    start({ url, command, transport, real }) {
      const entry = client === 'mcporter' ? real(entryFor('mcporter.json', transport)) : null;
      return {
        argv: [
          NODE_24,
          program('with-command-line.mjs'),
          JSON.stringify({ client, packages: wideTool(), url, command, entry }),
        ],
      };
    },
  };
}

/** With a model in their loop. */
export const codingAgents: readonly Published[] = [claudeCode, codex, gemini, opencode];

export const libraries: readonly Published[] = [
  library('OpenAI Agents SDK', 'openai-agents', program('with_openai_agents.py'), 'agents-v2'),
  library('Pydantic AI', 'pydantic-ai-slim', program('with_pydantic_ai.py'), 'agents-v2'),
  library('LangChain', 'langchain-mcp-adapters', program('with_langchain.py'), 'agents-v1'),
  library('mcp-use', 'mcp-use', program('with_mcp_use.py'), 'agents-v1'),
  library('AI SDK', '@ai-sdk/mcp', aiSdk),
  library('FastMCP', 'fastmcp', program('with_fastmcp.py'), 'agents-v2'),
];

/** They list, activate, list again and call, each with a connection of its own. */
export const commandLines: readonly Published[] = [
  commandLine('mcporter', 'mcporter', 'mcporter'),
  commandLine('MCP Inspector', '@modelcontextprotocol/inspector', 'inspector'),
];

export const sdks: readonly Published[] = [
  library('Python SDK 1', 'mcp', program('with_sdk.py'), 'v1'),
  library('Python SDK 2', 'mcp', program('with_sdk.py'), 'v2'),
];

export const bridges: readonly Published[] = [mcpRemote];

/** All of them, as the table shows them. */
export const published: readonly Published[] = [...codingAgents, ...libraries, ...sdks, ...commandLines, ...bridges];

const tools = fileURLToPath(new URL('../../tools/', import.meta.url));

/** The version in the lock file. */
export function versionOf({ package: name, python }: Published): string {
  for (const folder of ['', 'wide', 'clients']) {
    const { packages } = JSON.parse(readFileSync(join(tools, folder, 'package-lock.json'), 'utf8'));
    const found = packages[`node_modules/${name}`]?.version as string | undefined;
    // Codex names the platform in the version.
    if (found !== undefined) return found.replace(/-linux-x64$/, '');
  }
  const line = new RegExp(`^${name}==(.+)$`, 'm').exec(readFileSync(join(tools, `python-${python}.txt`), 'utf8'));
  if (line === null) throw new Error(`no lock file in test/tools has ${name}`);
  return line[1]!.trim();
}
