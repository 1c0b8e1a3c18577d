/**
 * Where clients keep their MCP servers, as a table: for a project and for the user, on Linux, macOS and Windows. Paths begin
 * at one of the folders in `ClientFolders`.
 */
import { homedir } from 'node:os';
import { join } from 'node:path';
import type { JsonObject } from '../base/objects.ts';
import type { EnvVars } from './expand.ts';
import type { Path } from './issues.ts';

/** How a client writes an entry that starts a program. */
export type EntryStyle = 'plain' | 'typed' | 'codex' | 'opencode' | 'zed';

interface ClientRow {
  readonly client: string;
  readonly level: 'project' | 'user';
  /** One for all systems, or by system. `{code}` is the user folder of VS Code. */
  readonly file: string | Readonly<Record<'linux' | 'darwin' | 'win32', string>>;
  /** Where the map of servers is in it. `{project}` is the path of the project. */
  readonly at: Path;
  readonly style: EntryStyle;
}

const MCP_SERVERS: Path = ['mcpServers'];

const TABLE: readonly ClientRow[] = [
  { client: 'Claude Code', level: 'project', file: '{project}/.mcp.json', at: MCP_SERVERS, style: 'typed' },
  { client: 'Claude Code', level: 'user', file: '{claude}/.claude.json', at: MCP_SERVERS, style: 'typed' },
  {
    client: 'Claude Code',
    level: 'project',
    file: '{claude}/.claude.json',
    at: ['projects', '{project}', 'mcpServers'],
    style: 'typed',
  },
  {
    client: 'Claude Desktop',
    level: 'user',
    file: {
      linux: '{config}/Claude/claude_desktop_config.json',
      darwin: '{library}/Claude/claude_desktop_config.json',
      win32: '{appdata}/Claude/claude_desktop_config.json',
    },
    at: MCP_SERVERS,
    style: 'plain',
  },
  { client: 'Cursor', level: 'project', file: '{project}/.cursor/mcp.json', at: MCP_SERVERS, style: 'plain' },
  { client: 'Cursor', level: 'user', file: '{home}/.cursor/mcp.json', at: MCP_SERVERS, style: 'plain' },
  { client: 'VS Code', level: 'project', file: '{project}/.vscode/mcp.json', at: ['servers'], style: 'typed' },
  {
    client: 'VS Code',
    level: 'project',
    file: '{project}/.vscode/settings.json',
    at: ['mcp', 'servers'],
    style: 'typed',
  },
  { client: 'VS Code', level: 'user', file: '{code}/mcp.json', at: ['servers'], style: 'typed' },
  { client: 'VS Code', level: 'user', file: '{code}/settings.json', at: ['mcp', 'servers'], style: 'typed' },
  { client: 'Copilot CLI', level: 'user', file: '{home}/.copilot/mcp-config.json', at: MCP_SERVERS, style: 'plain' },
  {
    client: 'Windsurf',
    level: 'user',
    file: '{home}/.codeium/windsurf/mcp_config.json',
    at: MCP_SERVERS,
    style: 'plain',
  },
  { client: 'Codex', level: 'project', file: '{project}/.codex/config.toml', at: ['mcp_servers'], style: 'codex' },
  { client: 'Codex', level: 'user', file: '{codex}/config.toml', at: ['mcp_servers'], style: 'codex' },
  { client: 'Gemini CLI', level: 'project', file: '{project}/.gemini/settings.json', at: MCP_SERVERS, style: 'plain' },
  { client: 'Gemini CLI', level: 'user', file: '{home}/.gemini/settings.json', at: MCP_SERVERS, style: 'plain' },
  { client: 'opencode', level: 'project', file: '{project}/opencode.json', at: ['mcp'], style: 'opencode' },
  { client: 'opencode', level: 'project', file: '{project}/opencode.jsonc', at: ['mcp'], style: 'opencode' },
  { client: 'opencode', level: 'user', file: '{config}/opencode/opencode.json', at: ['mcp'], style: 'opencode' },
  { client: 'opencode', level: 'user', file: '{config}/opencode/opencode.jsonc', at: ['mcp'], style: 'opencode' },
  { client: 'Zed', level: 'project', file: '{project}/.zed/settings.json', at: ['context_servers'], style: 'zed' },
  {
    client: 'Zed',
    level: 'user',
    file: {
      linux: '{config}/zed/settings.json',
      darwin: '{home}/.config/zed/settings.json',
      win32: '{appdata}/Zed/settings.json',
    },
    at: ['context_servers'],
    style: 'zed',
  },
  {
    client: 'Cline',
    level: 'user',
    file: '{home}/.cline/data/settings/cline_mcp_settings.json',
    at: MCP_SERVERS,
    style: 'plain',
  },
  {
    client: 'Cline',
    level: 'user',
    file: '{code}/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json',
    at: MCP_SERVERS,
    style: 'plain',
  },
  { client: 'Roo Code', level: 'project', file: '{project}/.roo/mcp.json', at: MCP_SERVERS, style: 'plain' },
  {
    client: 'Roo Code',
    level: 'user',
    file: '{code}/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json',
    at: MCP_SERVERS,
    style: 'plain',
  },
  { client: 'Kiro', level: 'project', file: '{project}/.kiro/settings/mcp.json', at: MCP_SERVERS, style: 'plain' },
  { client: 'Kiro', level: 'user', file: '{home}/.kiro/settings/mcp.json', at: MCP_SERVERS, style: 'plain' },
  { client: 'Amazon Q', level: 'user', file: '{home}/.aws/amazonq/mcp.json', at: MCP_SERVERS, style: 'plain' },
  { client: 'LM Studio', level: 'user', file: '{home}/.lmstudio/mcp.json', at: MCP_SERVERS, style: 'plain' },
];

/** A file of a client, and the place in it where its servers are. */
export interface ClientFile {
  readonly client: string;
  readonly level: 'project' | 'user';
  readonly file: string;
  readonly at: Path;
  readonly style: EntryStyle;
}

/** All files that clients on this system may have. None of them has to exist. */
export function clientFiles(project: string, env: EnvVars, platform: NodeJS.Platform = process.platform): ClientFile[] {
  const system = platform === 'win32' || platform === 'darwin' ? platform : 'linux';
  const home = (system === 'win32' ? env.USERPROFILE : undefined) || env.HOME || homedir();
  const library = join(home, 'Library', 'Application Support');
  const appdata = env.APPDATA || join(home, 'AppData', 'Roaming');
  const config = env.XDG_CONFIG_HOME || join(home, '.config');
  const folders: Readonly<Record<string, string>> = {
    project,
    home,
    library,
    appdata,
    config,
    code: join({ linux: config, darwin: library, win32: appdata }[system], 'Code', 'User'),
    codex: env.CODEX_HOME || join(home, '.codex'),
    claude: env.CLAUDE_CONFIG_DIR || home,
  };
  const placed = (text: string) => text.replace(/^\{(\w+)\}/, (_, name: string) => folders[name]!);
  return TABLE.map(({ client, level, file, at, style }) => ({
    client,
    level,
    file: join(placed(typeof file === 'string' ? file : file[system])),
    at: at.map((key) => (key === '{project}' ? project : key)),
    style,
  }));
}

/** For a file that is not in the table. */
export function styleAt(at: Path): EntryStyle {
  switch (at.join('.')) {
    case 'mcp':
      return 'opencode';
    case 'mcp_servers':
      return 'codex';
    case 'context_servers':
      return 'zed';
    case 'servers':
    case 'mcp.servers':
      return 'typed';
    default:
      return 'plain';
  }
}

/** The entry that starts a program, as the client writes it. */
export function entryInStyle(style: EntryStyle, command: string, args: readonly string[]): JsonObject {
  switch (style) {
    case 'plain':
      return { command, args };
    case 'typed':
      return { type: 'stdio', command, args };
    case 'codex':
      // Without `required`, `codex exec` starts before the tools are there.
      return { command, args, required: true };
    case 'opencode':
      return { type: 'local', command: [command, ...args] };
    case 'zed':
      return { source: 'custom', command, args };
  }
}
