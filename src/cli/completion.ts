/**
 * `toolgate completion`: the script of a shell, and the words that it asks for with every Tab. They come from the table
 * of commands and from files on disk. No server is started.
 */
import { GatewayError } from '../base/errors.ts';
import { userFolder } from '../base/user-folder.ts';
import { buildCatalog } from '../catalog/catalog.ts';
import { canonicalName } from '../catalog/entry.ts';
import { EMPTY_OFFER } from '../catalog/item.ts';
import type { Config } from '../config/config.ts';
import { loadConfig } from '../config/load.ts';
import { PLAN_FORMATS } from '../doors/commands/plan.ts';
import { openAgentStore } from '../store/agents.ts';
import { openOfferStore } from '../store/offers.ts';
import { openToolsetStore } from '../store/toolsets.ts';
import type { CommandIo } from './command-io.ts';
import { topics } from './help-topics.ts';
import { LEVELS } from './log-level.ts';
import {
  type Command,
  loadOptions,
  type NameKind,
  type NameKinds,
  type OptionName,
  optionSpec,
  optionTable,
  type RunCommand,
} from './options.ts';
import { print } from './terminal.ts';

const BASH = `# toolgate completion bash
_toolgate() {
  local word
  COMPREPLY=()
  while IFS= read -r word; do COMPREPLY+=("$word"); done \\
    < <(toolgate completion words -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -F _toolgate toolgate
`;

const ZSH = `#compdef toolgate
_toolgate() {
  local -a found
  found=("\${(@f)$(toolgate completion words -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ -n "\${found[1]}" ]]; then compadd -- "\${found[@]}"; else _files; fi
}
if [[ "\${funcstack[1]}" = _toolgate ]]; then _toolgate "$@"; else compdef _toolgate toolgate; fi
`;

const FISH = `# toolgate completion fish
function __toolgate_words
    set -l before (commandline -opc)
    set -e before[1]
    set -l current (commandline -ct)
    set -l found (toolgate completion words -- $before "$current" 2>/dev/null)
    if test (count $found) -gt 0
        string join \\n -- $found
    else
        __fish_complete_path "$current"
    end
end
complete -c toolgate -f -a '(__toolgate_words)'
`;

const SCRIPTS: Readonly<Record<string, string>> = { bash: BASH, zsh: ZSH, fish: FISH };

/** A command as it is found by its name or another word for it. */
interface FoundCommand {
  readonly command: Command;
  readonly verbs: readonly string[];
}

type FindCommand = (word: string) => FoundCommand | null;

export function createCompletion(commands: Readonly<Record<string, Command>>, find: FindCommand): RunCommand {
  const names = Object.keys(commands);
  return async ([shell = '', ...words], _, io) => {
    if (shell === 'words') {
      const found = await completionsFor(words, names, find, io);
      if (found.length > 0) print(found.join('\n'), io);
      return 0;
    }
    const script = Object.hasOwn(SCRIPTS, shell) ? SCRIPTS[shell] : undefined;
    if (script === undefined)
      throw new GatewayError('usage', 'toolgate completion needs the name of a shell: bash, zsh or fish.');
    io.stdout.write(script);
    return 0;
  };
}

/** Shells put what is chosen on the command line as it is, so a name that a shell would interpret is not offered. */
const PLAIN = /^[\w.@/+-]+$/;

/** What may come in the place of the last word. Nothing for names of files, which the shell knows itself. */
async function completionsFor(
  words: readonly string[],
  names: readonly string[],
  find: FindCommand,
  io: CommandIo,
): Promise<string[]> {
  const current = words.at(-1) ?? '';
  const [first] = words;
  if (words.length === 1 && !current.startsWith('-')) return matching(current, [...names, 'help']);
  if (first === 'help') return words.length === 2 ? matching(current, [...names, ...topics()]) : [];
  const isNamed = words.length > 1 && first?.startsWith('-') === false;
  const given = find(isNamed ? first : 'stdio');
  if (given === null) return [];
  const own = words.slice(isNamed ? 1 : 0, -1);
  return matching(current, await candidates(given, own, current, io).catch((): string[] => []));
}

function matching(current: string, found: readonly string[]): string[] {
  return [...new Set(found)].filter((word) => word.startsWith(current) && PLAIN.test(word)).sort();
}

/** `own`: the words after the command, without the one that is being written. */
async function candidates(
  { command, verbs }: FoundCommand,
  own: readonly string[],
  current: string,
  io: CommandIo,
): Promise<readonly string[]> {
  const valued = optionOf(own.at(-1) ?? '');
  if (valued !== null && optionSpec(valued).type === 'string') return valuesOf(valued, own, io);
  if (current.startsWith('-')) {
    const isGiven = (option: OptionName) => own.includes(`--${option}`) && optionSpec(option).multiple !== true;
    const all: readonly OptionName[] = [...command.options, 'help', 'version'];
    return all.filter((option) => !isGiven(option)).map((option) => `--${option}`);
  }
  const given = positionals(own);
  if (given.length === 0 && verbs.length > 0) return verbs;
  const [kinds, count] = kindsOf(command, given, verbs.length > 0);
  const kind = kinds[count] ?? kinds.at(-1);
  if (kind === undefined || (count >= kinds.length && kind !== '…')) return [];
  return namesOf(kind === '…' ? (kinds.at(-2) as NameKind) : (kind as NameKind), own, io);
}

/** What the words after the command name, and how many there are already. */
function kindsOf({ names = [] }: Command, given: readonly string[], hasVerbs: boolean): readonly [NameKinds, number] {
  if (Array.isArray(names)) return [names as NameKinds, given.length];
  const [verb = ''] = given;
  const byVerb = names as Readonly<Record<string, NameKinds>>;
  return [hasVerbs && Object.hasOwn(byVerb, verb) ? byVerb[verb]! : [], given.length - 1];
}

function optionOf(word: string): OptionName | null {
  const name = word.replace(/^--/, '');
  return word.startsWith('--') && Object.hasOwn(optionTable, name) ? (name as OptionName) : null;
}

/** The words that are neither options nor their values. */
function positionals(words: readonly string[]): string[] {
  return words.filter((word, index) => {
    const before = optionOf(words[index - 1] ?? '');
    return !word.startsWith('-') && (before === null || optionSpec(before).type === 'boolean');
  });
}

async function valuesOf(option: OptionName, words: readonly string[], io: CommandIo): Promise<readonly string[]> {
  switch (option) {
    case 'log-level':
      return LEVELS;
    case 'language':
      return ['typescript', 'python'];
    case 'format':
      return PLAN_FORMATS;
    case 'equip-toolset':
      return namesOf('toolset', words, io);
    case 'agent':
    case 'server':
      return namesOf(option, words, io);
    case 'add':
    case 'remove':
      return namesOf('reference', words, io);
    default:
      return [];
  }
}

async function namesOf(kind: NameKind, words: readonly string[], io: CommandIo): Promise<readonly string[]> {
  if (kind === 'new') return [];
  const config = await configOf(words, io);
  switch (kind) {
    case 'toolset':
      return toolsetNames(config, io);
    case 'reference':
      return toolNames(config, canonicalName);
    case 'tool':
      return toolNames(config, ({ name }) => name);
    case 'macro':
      return config.macros.map(({ name }) => name);
    case 'server':
      return config.servers.map(({ key }) => key);
    case 'agent':
      return agentNames(config);
    default:
      return kind satisfies never;
  }
}

/** With `--config` as on the command line that is being written. */
function configOf(words: readonly string[], io: CommandIo): Promise<Config> {
  const at = words.indexOf('--config');
  const path = at < 0 ? undefined : words[at + 1];
  return loadConfig(loadOptions(path === undefined ? {} : { config: path }, io));
}

async function toolsetNames(config: Config, { env }: CommandIo): Promise<string[]> {
  const saved = await openToolsetStore(config.dataDir, userFolder(env)).names();
  return [...config.toolsets.map(({ name }) => name), ...saved];
}

async function agentNames({ dataDir, policy, agents }: Config): Promise<string[]> {
  const stored = (await openAgentStore(dataDir).read()) ?? [];
  return [...agents, ...stored, ...(policy?.agents ?? [])].map(({ name }) => name);
}

/** As servers offered them last. */
function toolNames(config: Config, write: (entry: Parameters<typeof canonicalName>[0]) => string): string[] {
  const offers = openOfferStore(config.dataDir);
  const contributions = config.servers.map(({ key, namespace, launchHash }, index) => ({
    id: index + 1,
    key,
    namespace,
    offer: offers.read(launchHash)?.offer ?? EMPTY_OFFER,
    present: true,
  }));
  const { tool } = buildCatalog(1, contributions, [], config).entries;
  return [...tool.values()].map(write);
}
