/** The manual page, from the same table as `--help`. */
import { VERSION } from '../base/version.ts';
import { commands } from './commands.ts';
import { type Command, type OptionName, optionSpec } from './options.ts';

export function manPage(): string {
  return `${[
    `.TH TOOLGATE 1 "" "Toolgate ${VERSION}" "User Commands"`,
    '.SH NAME',
    'toolgate \\- one gateway for all the MCP tools an agent uses',
    '.SH SYNOPSIS',
    '.B toolgate',
    '[\\fICOMMAND\\fR] [\\fIOPTIONS\\fR]',
    '.SH DESCRIPTION',
    text(
      'Toolgate starts the MCP servers of a configuration, or connects to them, and serves all of their tools to clients through one connection. Without a command it serves on standard input and output.',
    ),
    '.SH COMMANDS',
    ...Object.values(commands).flatMap(section),
    '.SH FILES',
    '.TP',
    text('tools.toml, toolgate.toml, toolgate.yaml, toolgate.yml, toolgate.json, .mcp.json'),
    text('The configuration: --config, $TOOLGATE_CONFIG, or the first of these in the working directory.'),
    '.TP',
    text('tools.lock'),
    text('Definitions of tools as they were approved.'),
    '.TP',
    text('.toolgate'),
    text('The data folder next to the configuration.'),
    '.SH "EXIT STATUS"',
    text('0 if all is well. 1 if a command says no, such as doctor with warnings. 2 for mistakes and failures.'),
    '.SH "SEE ALSO"',
    text('toolgate help topics lists the pages of the documentation, toolgate help TOPIC prints one.'),
  ].join('\n')}\n`;
}

function section({ usage, summary, details = [], examples = [], options, texts }: Command): string[] {
  const sentence = `${summary[0]!.toUpperCase()}${summary.slice(1)}.`;
  return [
    `.SS "${text(usage).replaceAll('"', '\\(dq')}"`,
    text(sentence),
    ...details.flatMap((one) => ['.PP', text(one)]),
    ...options.flatMap((name) => ['.TP', optionText(name), text(texts?.[name] ?? optionSpec(name).text)]),
    ...(examples.length === 0
      ? []
      : ['.PP', 'Examples:', '.PP', '.nf', ...examples.map((one) => text(`  ${one}`)), '.fi']),
  ];
}

function optionText(name: OptionName): string {
  const { short, value } = optionSpec(name);
  const names = short === undefined ? `--${name}` : `--${name}, -${short}`;
  return `\\fB${text(names)}\\fR${value === undefined ? '' : ` \\fI${text(value)}\\fR`}`;
}

/** Nothing in it is an instruction to roff. */
function text(plain: string): string {
  const escaped = plain.replaceAll('\\', '\\e').replaceAll('-', '\\-').replaceAll('…', '...');
  return /^[.']/.test(escaped) ? `\\&${escaped}` : escaped;
}
