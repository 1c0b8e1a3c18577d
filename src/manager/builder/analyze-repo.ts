/** `analyze_repo`: clones a repository, or downloads a package, and says what it is, without running anything of it. */
import { isUtf8 } from 'node:buffer';
import { setImmediate as breathe } from 'node:timers/promises';
import { messageOf } from '../../base/errors.ts';
import type { RepositoriesConfig } from '../../config/repositories.ts';
import { goTools } from './go-tools.ts';
import { isManifest, readManifest } from './manifests.ts';
import { isSecretName, outsideOf } from './outside.ts';
import { isPackage } from './packages.ts';
import { pythonTools } from './python-tools.ts';
import {
  fetchRepository,
  listFiles,
  type Repository,
  type RepositoryFile,
  readFiles,
  type Work,
} from './repositories.ts';
import {
  type FoundTool,
  type FoundTools,
  languageOf,
  loadParser,
  type SourceFile,
  type SourceLanguage,
} from './syntax.ts';
import { typescriptTools } from './typescript-tools.ts';

/** The answer, in the words of the tool. */
export interface RepoAnalysis {
  readonly repo_url: string;
  readonly language: string;
  readonly framework: string;
  readonly files: readonly string[];
  readonly tools_found: readonly FoundTool[];
  readonly dependencies: Readonly<Record<string, string>>;
  readonly apis_called: readonly string[];
  readonly secrets_needed: readonly string[];
  /** Other environment variables that the code reads. */
  readonly environment: readonly string[];
  /** What was left out, and names of tools that only a run would tell. */
  readonly notes: readonly string[];
}

const MAX_FILE = 512 * 1024;
const MAX_SOURCES = 24 * 1024 * 1024;
const MAX_LISTED = 1_000;
const MAX_NOTES = 50;

/** Folders and files that are not the program. */
const ASIDE =
  /(?:^|\/)(?:node_modules|vendor|third_party|\.git|\.venv|venv|site-packages|__pycache__|__tests__|__mocks__|tests?|e2e|fixtures?|testdata|benchmarks?|coverage)\/|(?:^|\/)(?:test_[^/]*|conftest|[^/]*_test)\.py$|_test\.go$|\.(?:test|spec|bench|stories|config|min)\.[cm]?[jt]sx?$/;
const EXAMPLES = /(?:^|\/)(?:examples?|samples?|demos?|docs?)\//;
/** Compiled from the sources, if those are there. */
const COMPILED = /(?:^|\/)(?:dist|build|out|lib\/(?:esm|cjs))\//;

const finders: Readonly<Record<SourceLanguage, (files: readonly SourceFile[]) => FoundTools>> = {
  typescript: typescriptTools,
  python: pythonTools,
  go: goTools,
};

/** Only what is below `folder` is analyzed, if one is given. */
export async function analyzeRepo(
  url: string,
  config: RepositoriesConfig,
  work: Work,
  folder = '',
): Promise<RepoAnalysis> {
  const parse = await loadParser();
  const repository = await fetchRepository(url, config, work);
  const listed = (await listFiles(repository, work)).filter(({ path }) => isBelow(path, folder));
  const { sources, notes } = chooseSources(listed);
  const manifests = listed.filter(({ path, size }) => isManifest(path) && size <= MAX_FILE && !ASIDE.test(path));
  work.progress(`reading ${sources.length} source files`);
  const files: SourceFile[] = [];
  for (const { path, text } of await readTexts(repository, sources, work)) {
    try {
      const file = parse(path, text);
      if (file !== null) files.push(file);
    } catch (error) {
      notes.push(`${path} was left out: ${messageOf(error)}`);
    }
    // A parser blocks. In between, other calls are answered, and this one can be cancelled.
    await breathe();
    work.signal?.throwIfAborted();
  }
  work.progress('looking for tools');
  const tools: FoundTool[] = [];
  for (const [language, find] of Object.entries(finders)) {
    const found = find(files.filter((file) => file.language === language));
    tools.push(...found.tools);
    notes.push(...found.notes);
    await breathe();
    work.signal?.throwIfAborted();
  }
  const declared = (await readTexts(repository, manifests, work)).map(({ path, text }) => readManifest(path, text));
  // The outermost manifest comes last and wins.
  const dependencies = Object.assign({}, ...declared.map((one) => one.dependencies).reverse()) as Record<
    string,
    string
  >;
  const outside = outsideOf(files);
  const secrets = new Set([...declared.flatMap((one) => one.secrets), ...outside.variables.filter(isSecretName)]);
  const language = languageOfAll(files, tools);
  return {
    repo_url: url,
    language: language ?? 'unknown',
    framework: language === null ? 'unknown' : frameworkOf(language, files, dependencies),
    files: listed.slice(0, MAX_LISTED).map(({ path }) => path),
    tools_found: unique(tools),
    dependencies,
    apis_called: outside.hosts,
    secrets_needed: [...secrets].sort(),
    environment: outside.variables.filter((name) => !secrets.has(name)),
    notes: [
      ...(isPackage(url) ? [`This is version ${repository.commit} of the package.`] : []),
      ...(listed.length > MAX_LISTED ? [`${listed.length - MAX_LISTED} more files are not listed.`] : []),
      ...notes.slice(0, MAX_NOTES),
    ],
  };
}

function isBelow(path: string, folder: string): boolean {
  const trimmed = folder.replace(/^\.?\/+|\/+$/g, '');
  return trimmed === '' || path.startsWith(`${trimmed}/`);
}

/** The files to parse. Examples count only if there is nothing else, and so does what was compiled. */
function chooseSources(listed: readonly RepositoryFile[]): { sources: RepositoryFile[]; notes: string[] } {
  const notes: string[] = [];
  const code = listed.filter(({ path }) => languageOf(path) !== null && !ASIDE.test(path));
  const own = code.filter(({ path }) => !EXAMPLES.test(path));
  const chosen = own.length > 0 ? own : code;
  const written = new Set(chosen.filter(({ path }) => !COMPILED.test(path)).map(({ path }) => languageOf(path)));
  const sources: RepositoryFile[] = [];
  let total = 0;
  for (const file of chosen) {
    if (COMPILED.test(file.path) && written.has(languageOf(file.path))) continue;
    total += file.size;
    if (file.size > MAX_FILE) notes.push(`${file.path} was left out: it is larger than 512 KiB`);
    else if (total > MAX_SOURCES) notes.push(`${file.path} was left out: the sources are larger than 24 MiB`);
    else sources.push(file);
  }
  return { sources, notes };
}

async function readTexts(
  repository: Repository,
  files: readonly RepositoryFile[],
  work: Work,
): Promise<{ path: string; text: string }[]> {
  const contents = await readFiles(repository, files, work);
  return files.flatMap(({ path }, index) => {
    const bytes = contents[index]!;
    return isUtf8(bytes) ? [{ path, text: bytes.toString('utf8') }] : [];
  });
}

/** That of most tools, else of most code. */
function languageOfAll(files: readonly SourceFile[], tools: readonly FoundTool[]): SourceLanguage | null {
  const score = new Map<SourceLanguage, number>();
  const add = (language: SourceLanguage | null, points: number) => {
    if (language !== null) score.set(language, (score.get(language) ?? 0) + points);
  };
  for (const { file } of tools) add(languageOf(file), 1e12);
  for (const { language, root } of files) add(language, root.text().length);
  return [...score].toSorted((a, b) => b[1] - a[1])[0]?.[0] ?? null;
}

/** By what is imported, else by what is depended on. */
const FRAMEWORKS: Readonly<Record<SourceLanguage, readonly (readonly [string, RegExp, readonly string[]])[]>> = {
  typescript: [
    ['fastmcp', /from\s+['"]fastmcp['"]/, ['fastmcp']],
    ['mcp-framework', /from\s+['"]mcp-framework['"]/, ['mcp-framework']],
    ['xmcp', /from\s+['"]xmcp['"]/, ['xmcp']],
    [
      'mcp-sdk',
      /['"]@modelcontextprotocol\/(?:sdk|server)\b/,
      ['@modelcontextprotocol/sdk', '@modelcontextprotocol/server'],
    ],
  ],
  python: [
    [
      'fastmcp',
      /^\s*(?:from|import)\s+(?:fastmcp|mcp\.server\.(?:fastmcp|mcpserver))\b|\bfrom\s+mcp\.server\s+import\s+(?:[^\n]*\b)?(?:FastMCP|MCPServer)\b/m,
      ['fastmcp'],
    ],
    ['mcp-sdk', /^\s*(?:from|import)\s+mcp\b/m, ['mcp']],
  ],
  go: [
    ['mcp-go', /"github\.com\/mark3labs\/mcp-go\//, ['github.com/mark3labs/mcp-go']],
    ['mcp-sdk', /"github\.com\/modelcontextprotocol\/go-sdk\//, ['github.com/modelcontextprotocol/go-sdk']],
  ],
};

function frameworkOf(
  language: SourceLanguage,
  files: readonly SourceFile[],
  dependencies: Readonly<Record<string, string>>,
): string {
  const texts = files.filter((file) => file.language === language).map(({ root }) => root.text());
  const known = FRAMEWORKS[language];
  const imported = known.find(([, form]) => texts.some((text) => form.test(text)));
  const found = imported ?? known.find(([, , names]) => names.some((name) => Object.hasOwn(dependencies, name)));
  return found?.[0] ?? 'unknown';
}

/** One tool may be found in two ways at the same place. */
function unique(tools: readonly FoundTool[]): FoundTool[] {
  const seen = new Map<string, FoundTool>();
  for (const tool of tools) {
    const known = seen.get(`${tool.file} ${tool.name}`);
    if (known === undefined || known.parameters.length < tool.parameters.length)
      seen.set(`${tool.file} ${tool.name}`, tool);
  }
  return [...seen.values()];
}
