/** What an analysis finds in published servers, compared with what they list, and in small repositories of each kind. */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { describe, expect, it } from 'vitest';
import type { RepositoriesConfig } from '../../src/config/repositories.ts';
import { analyzeRepo, type RepoAnalysis } from '../../src/manager/builder/analyze-repo.ts';
import { gitRepository } from '../support/repository.ts';
import { type Files, tempFolder } from '../support/temp.ts';

const CONFIG: RepositoriesConfig = { from: 'local', size: 1e8, timeout: 60_000, quota: 1e9, keep: 3_600_000 };

function analyze(files: Files, folder = ''): Promise<RepoAnalysis> {
  const work = { dataDir: tempFolder(), env: process.env, signal: null, progress: () => {} };
  return analyzeRepo(gitRepository(files), CONFIG, work, folder);
}

const modules = fileURLToPath(new URL('../../node_modules/@modelcontextprotocol/', import.meta.url));

/** The files of a published package. */
function packageFiles(folder: string): Files {
  const paths = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  const own = paths.filter((path) => !path.startsWith('node_modules') && statSync(join(folder, path)).isFile());
  return Object.fromEntries(own.map((path) => [path, readFileSync(join(folder, path))]));
}

async function listedTools(folder: string, args: string[]) {
  const client = new Client(
    { name: 'test', version: '1' },
    { capabilities: { sampling: {}, elicitation: { form: {}, url: {} }, roots: {} } },
  );
  const { bin } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { bin: Record<string, string> };
  const program = join(folder, Object.values(bin)[0]!);
  await client.connect(
    new StdioClientTransport({ command: process.execPath, args: [program, ...args], stderr: 'ignore' }),
  );
  try {
    return (await client.listTools()).tools;
  } finally {
    await client.close();
  }
}

describe('published servers', () => {
  it.each([
    ['server-filesystem', [tempFolder()]],
    ['server-everything', []],
    ['server-memory', []],
  ])('%s: every tool that it lists is found, with its description and parameters', async (name, args) => {
    const folder = join(modules, name);
    const { tools_found: found, language, framework, dependencies } = await analyze(packageFiles(folder));
    expect({ language, framework }).toEqual({ language: 'typescript', framework: 'mcp-sdk' });
    expect(Object.keys(dependencies)).toContain('@modelcontextprotocol/sdk');
    const byName = new Map(found.map((tool) => [tool.name, tool]));
    for (const tool of await listedTools(folder, args)) {
      const one = byName.get(tool.name);
      expect(one?.description.replace(/\s+/g, ' ').slice(0, 30)).toBe(
        tool.description?.replace(/\s+/g, ' ').slice(0, 30),
      );
      expect(one?.parameters.map((parameter) => parameter.name)).toEqual(
        Object.keys(tool.inputSchema.properties ?? {}),
      );
    }
  });
});

const names = ({ tools_found }: RepoAnalysis) => tools_found.map(({ name }) => name);

describe('TypeScript', () => {
  it('finds tools of both versions of the SDK in every form, and says what they need', async () => {
    const found = await analyze({
      'package.json': JSON.stringify({
        dependencies: { '@modelcontextprotocol/server': '^2.0.0', '@octokit/rest': '^20.0.0' },
      }),
      'src/names.ts': "export enum Names { Close = 'close_issue' }\nexport const PREFIX = 'issue';",
      'src/schemas.ts':
        "import { z } from 'zod';\nexport const Search = z.object({ query: z.string().describe('What to find'), page: z.number().int().optional() });",
      'src/index.ts': `
        import { McpServer } from '@modelcontextprotocol/server';
        import * as schemas from './schemas.js';
        const token = process.env.GITHUB_TOKEN; const { GITHUB_HOST, SENTRY_DSN: dsn } = process.env;
        server.registerTool('list_issues', {
          description: 'List ' + 'issues', inputSchema: { owner: z.string().describe('Who owns it'), state: z.enum(['open']).default('open') },
        }, async ({ owner }) => fetch(\`https://api.github.com/repos/\${owner}\`));
        server.registerTool(\`\${PREFIX}_count\`, { description: 'Count', inputSchema: z.object({ all: z.boolean() }).strict() }, run);
        server.tool('old_form', 'The older form', { a: z.number() }, async () => ({}));
        server.tool('bare', async () => ({}));
        server.experimental.tasks.registerToolTask('slow', { description: 'A task' }, handlers);
        // See https://docs.github.com and https://www.w3.org/
        server.setRequestHandler(ListToolsRequestSchema, async () => ({ tools: [
          { name: Names.Close, description: ['Close', 'it'].join(' '), inputSchema: { type: 'object', properties: { id: { type: 'number', description: 'Which' } }, required: ['id'] } },
          { name: 'search', description: 'Search', inputSchema: zodToJsonSchema(schemas.Search) },
        ] }));
        for (const one of more) server.registerTool(one.name, one, one.run);
        server.registerTool(makeName(1), { description: 'Unknown' }, run);
      `,
      'src/index.test.ts': "server.registerTool('not_this', {}, run)",
      'dist/index.js': "server.registerTool('compiled', {}, run)",
      'examples/a.ts': "server.registerTool('an_example', {}, run)",
    });
    expect(names(found).sort()).toEqual([
      'bare',
      'close_issue',
      'issue_count',
      'list_issues',
      'old_form',
      'search',
      'slow',
    ]);
    expect(found.tools_found.find(({ name }) => name === 'list_issues')).toMatchObject({
      file: 'src/index.ts',
      line: 5,
      description: 'List issues',
      parameters: [
        { name: 'owner', type: 'string', required: true, description: 'Who owns it' },
        { name: 'state', type: 'string', required: false, description: '' },
      ],
    });
    expect(found.tools_found.find(({ name }) => name === 'search')?.parameters).toEqual([
      { name: 'query', type: 'string', required: true, description: 'What to find' },
      { name: 'page', type: 'integer', required: false, description: '' },
    ]);
    expect(found.tools_found.find(({ name }) => name === 'close_issue')).toMatchObject({
      description: 'Close it',
      parameters: [{ name: 'id', type: 'number', required: true, description: 'Which' }],
    });
    expect(found).toMatchObject({
      language: 'typescript',
      framework: 'mcp-sdk',
      dependencies: { '@octokit/rest': '^20.0.0' },
      apis_called: ['api.github.com'],
      secrets_needed: ['GITHUB_TOKEN', 'SENTRY_DSN'],
      environment: ['GITHUB_HOST'],
      notes: [expect.stringContaining('src/index.ts:18: a tool whose name is worked out at run time: makeName(1)')],
    });
  });

  it('finds tools of FastMCP and of classes', async () => {
    const found = await analyze({
      'a.ts':
        "import { FastMCP } from 'fastmcp';\nserver.addTool({ name: 'add', description: 'Adds', parameters: z.object({ a: z.number() }), execute: run });",
      'b.ts':
        "class Hello extends MCPTool<Input> { name = 'hello'; description = 'Says hello'; schema = { who: { type: z.string() } }; }",
    });
    expect(names(found)).toEqual(['add', 'hello']);
    expect(found.framework).toBe('fastmcp');
  });
});

describe('Python', () => {
  it('finds tools of FastMCP in every form', async () => {
    const found = await analyze({
      'pyproject.toml':
        '[project]\nname = "x"\ndependencies = ["fastmcp>=3", "httpx[http2]>=0.28 ; python_version > \'3.9\'"]\n',
      'server.py': `
import os
from typing import Annotated, Optional
from fastmcp import FastMCP, Context
from fastmcp.tools import tool
mcp = FastMCP("x")
API = "https://api.weather.gov"
KEY = os.environ["WEATHER_API_KEY"]
REGION = os.getenv("REGION", "eu")

@mcp.tool
async def forecast(ctx: Context, city: str, days: Annotated[int, Field(description="How many")] = 3) -> dict:
    """Get the forecast.

    Args:
        city: Which city,
            by name.
        days: Not this one.

    See https://docs.example.com for more.
    """

@mcp.tool("renamed", description="Another name")
def other(flag: bool, tags: Optional[list[str]] = None): ...

@tool(name="third")
def third_function(value: float = Field(description="A value", default=1.0)):
    """Third."""

class Handler:
    def __init__(self, mcp):
        mcp.tool(name="method_tool")(self.run)
        mcp.add_tool(plain)

    async def run(self, id: int):
        """Runs it."""

def plain(text: str):
    """Plain."""
`,
      'tests/test_server.py': '@mcp.tool\ndef not_this(): ...',
    });
    expect(found.tools_found.map(({ line: _, file: __, ...tool }) => tool)).toEqual([
      {
        name: 'forecast',
        description: expect.stringContaining('Get the forecast.'),
        parameters: [
          { name: 'city', type: 'string', required: true, description: 'Which city, by name.' },
          { name: 'days', type: 'integer', required: false, description: 'How many' },
        ],
      },
      {
        name: 'renamed',
        description: 'Another name',
        parameters: [
          { name: 'flag', type: 'boolean', required: true, description: '' },
          { name: 'tags', type: 'array', required: false, description: '' },
        ],
      },
      {
        name: 'third',
        description: 'Third.',
        parameters: [{ name: 'value', type: 'number', required: false, description: 'A value' }],
      },
      {
        name: 'method_tool',
        description: 'Runs it.',
        parameters: [{ name: 'id', type: 'integer', required: true, description: '' }],
      },
      {
        name: 'plain',
        description: 'Plain.',
        parameters: [{ name: 'text', type: 'string', required: true, description: '' }],
      },
    ]);
    expect(found).toMatchObject({
      language: 'python',
      framework: 'fastmcp',
      dependencies: { fastmcp: '>=3', httpx: '>=0.28' },
      apis_called: ['api.weather.gov'],
      secrets_needed: ['WEATHER_API_KEY'],
      environment: ['REGION'],
    });
  });

  it('finds tools of the low level, with names from enums and parameters from models and schemas', async () => {
    const found = await analyze(
      {
        'requirements.txt': 'mcp==1.2.0\n# a comment\n-e .\n',
        'src/git/server.py': `
from mcp.server import Server
from mcp.types import Tool
class GitTools(str, Enum):
    STATUS = "git_status"
    LOG = "git_log"
class GitLog(BaseModel):
    repo_path: str
    max_count: int = Field(10, description="How many")
@server.list_tools()
async def list_tools():
    return [
        Tool(name=GitTools.STATUS, description="Shows " "the status",
             inputSchema={"type": "object", "properties": {"repo_path": {"type": "string"}}, "required": ["repo_path"]}),
        types.Tool(name=GitTools.LOG.value, description=f"Shows {'x'} logs", inputSchema=GitLog.model_json_schema()),
    ]
`,
        'src/other/server.py': '@mcp.tool()\ndef elsewhere(): ...',
      },
      'src/git',
    );
    expect(
      found.tools_found.map(({ name, description, parameters }) => [
        name,
        description,
        parameters.map((one) => `${one.name}${one.required ? '' : '?'}`),
      ]),
    ).toEqual([
      ['git_status', 'Shows the status', ['repo_path']],
      ['git_log', 'Shows x logs', ['repo_path', 'max_count?']],
    ]);
    expect(found.framework).toBe('mcp-sdk');
  });
});

describe('Go', () => {
  it('finds tools of mcp-go and of the official SDK', async () => {
    const found = await analyze({
      'go.mod':
        'module example.com/x\n\nrequire (\n\tgithub.com/mark3labs/mcp-go v1.2.1\n\tgolang.org/x/text v0.1.0 // indirect\n)\n',
      'main.go': `package main
import "github.com/mark3labs/mcp-go/mcp"
const toolName = "echo" + "_it"
type Input struct {
  Name string \`json:"name" jsonschema:"whom to greet"\`
  Loud bool \`json:"loud,omitempty"\`
}
func Greet(ctx context.Context, req *mcp.CallToolRequest, in Input) (*mcp.CallToolResult, any, error) { return nil, nil, nil }
func main() {
  token := os.Getenv("SLACK_BOT_TOKEN")
  http.Get("https://slack.com/api/x")
  s.AddTool(mcp.NewTool(toolName, mcp.WithDescription(t("KEY", "Echoes it")),
    mcp.WithString("message", mcp.Required(), mcp.Description("What")), mcp.WithNumber("times")), handle)
  mcp.AddTool(server, &mcp.Tool{Name: "greet", Description: \`Says hi\`}, Greet)
  s.AddTool(mcp.NewTool("typed", mcp.WithInputSchema[Input]()), handle)
}
`,
      'main_test.go': 'package main\nvar x = mcp.NewTool("not_this")',
    });
    expect(found.tools_found.map(({ name, description, parameters }) => [name, description, parameters])).toEqual([
      [
        'echo_it',
        'Echoes it',
        [
          { name: 'message', type: 'string', required: true, description: 'What' },
          { name: 'times', type: 'number', required: false, description: '' },
        ],
      ],
      ['typed', '', expect.any(Array)],
      [
        'greet',
        'Says hi',
        [
          { name: 'name', type: 'string', required: true, description: 'whom to greet' },
          { name: 'loud', type: 'boolean', required: false, description: '' },
        ],
      ],
    ]);
    expect(found.tools_found[1]!.parameters).toHaveLength(2);
    expect(found).toMatchObject({
      language: 'go',
      framework: 'mcp-go',
      dependencies: { 'github.com/mark3labs/mcp-go': 'v1.2.1' },
      apis_called: ['slack.com'],
      secrets_needed: ['SLACK_BOT_TOKEN'],
    });
  });
});

describe('a repository', () => {
  it('without code, or with code that cannot be parsed, is described all the same', async () => {
    expect(await analyze({ 'README.md': '# Hello' })).toMatchObject({
      language: 'unknown',
      framework: 'unknown',
      tools_found: [],
    });
    const odd = await analyze({
      'deep.py': '('.repeat(100_000),
      'big.js': `x = "${'a'.repeat(600_000)}"`,
      'latin.py': new Uint8Array([0x23, 0xe9, 0x0a]),
      'broken.ts': "const = ;\nserver.registerTool('still_found', { description: 'x' }, run)",
      'package.json': '{ not json',
    });
    expect(names(odd)).toEqual(['still_found']);
    expect(odd.notes).toEqual([
      'big.js was left out: it is larger than 512 KiB',
      'deep.py was left out: it is nested too deeply',
    ]);
  });

  it('names secrets that its server.json declares', async () => {
    const server = {
      packages: [{ environmentVariables: [{ name: 'ACME_LOGIN', isSecret: true }, { name: 'ACME_URL' }] }],
    };
    expect((await analyze({ 'server.json': JSON.stringify(server) })).secrets_needed).toEqual(['ACME_LOGIN']);
  });
});
