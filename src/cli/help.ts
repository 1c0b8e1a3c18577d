/** The texts of `--help`, in lines that fit into a terminal of 80 columns. */
import { type CommandName, commands } from './commands.ts';
import { type Command, optionSpec } from './options.ts';

const WIDTH = 80;

const EXAMPLES = [
  'toolgate doctor                       check the configuration in this folder',
  'toolgate list                         see the tools that it offers',
  'toolgate serve                        serve them at http://127.0.0.1:8808/mcp',
  'claude mcp add toolgate -- toolgate   let Claude Code start it in this folder',
];

export function helpText(): string {
  const rows = Object.entries(commands).map(([name, { summary }]) => [name, summary] as const);
  return [
    'Toolgate: one gateway for all the MCP tools an agent uses.',
    '',
    'Usage: toolgate [COMMAND] [OPTIONS]',
    '',
    ...inColumns(rows),
    '',
    'Examples:',
    ...EXAMPLES.map((example) => `  ${example}`),
    '',
    ...wrap(
      'Every command takes --help. toolgate help topics lists pages about everything else. The configuration is --config PATH, $TOOLGATE_CONFIG, or the first of tools.toml, ' +
        'toolgate.toml, toolgate.yaml, toolgate.yml, toolgate.json, .mcp.json in this folder.',
    ),
  ].join('\n');
}

export function commandHelp(name: CommandName): string {
  const command: Command = commands[name];
  const rows = [...command.options, 'help' as const].map((option) => {
    const { short, value, text } = optionSpec(option);
    const names = short === undefined ? `--${option}` : `--${option}, -${short}`;
    return [`${names}${value === undefined ? '' : ` ${value}`}`, command.texts?.[option] ?? text] as const;
  });
  const { usage, summary, details = [], examples = [] } = command;
  return [
    ...wrap(usage, '    '),
    '',
    ...wrap(`${summary[0]!.toUpperCase()}${summary.slice(1)}.`),
    ...(details.length === 0 ? [] : ['', ...details.flatMap((text) => wrap(text))]),
    '',
    ...inColumns(rows),
    ...(examples.length === 0 ? [] : ['', 'Examples:', ...examples.map((example) => `  ${example}`)]),
  ].join('\n');
}

/** Two columns. The second one is wrapped. */
function inColumns(rows: readonly (readonly [string, string])[]): string[] {
  const width = Math.max(...rows.map(([first]) => first.length));
  return rows.flatMap(([first, second]) => wrap(`  ${first.padEnd(width)}  ${second}`, ' '.repeat(width + 4)));
}

/** Lines of at most 80 characters. All but the first begin with `indent`. */
function wrap(text: string, indent = ''): string[] {
  const lines: string[] = [];
  let rest = text;
  while (rest.length > WIDTH) {
    const end = rest.lastIndexOf(' ', WIDTH);
    // A word that is too long has a line of its own.
    const cut = end > indent.length ? end : rest.indexOf(' ', WIDTH);
    if (cut < 0) break;
    lines.push(rest.slice(0, cut).trimEnd());
    rest = indent + rest.slice(cut + 1);
  }
  return [...lines, rest];
}
