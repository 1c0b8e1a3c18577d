/** What code uses from outside: hosts that it calls, and environment variables that it reads. */
import { all, type SourceFile } from './syntax.ts';

export interface Outside {
  readonly hosts: readonly string[];
  readonly variables: readonly string[];
}

/** Text inside of strings. */
const STRINGS: Readonly<Record<SourceFile['language'], readonly string[]>> = {
  typescript: ['string_fragment'],
  python: ['string_content'],
  go: ['interpreted_string_literal', 'raw_string_literal'],
};

/** Addresses in code that nobody calls: licenses, schemas, documentation, examples. */
const NOISE =
  /(?:^|\.)(?:w3\.org|json-schema\.org|apache\.org|opensource\.org|example\.(?:com|org|net)|schema\.org|modelcontextprotocol\.io|npmjs\.com|pypi\.org|python\.org|mozilla\.org|wikipedia\.org|readthedocs\.io|spdx\.org|ietf\.org)$|^(?:docs?|www|developers?|help|support|schemas?|github|gitlab|localhost)\b(?:\.|$)|\.(?:test|local|localhost|invalid)$|^\d+(?:\.\d+)*$/;

const VARIABLES: Readonly<Record<SourceFile['language'], readonly RegExp[]>> = {
  typescript: [
    /\bprocess\.env\.([A-Za-z_]\w*)/g,
    /\bprocess\.env\[\s*['"`]([A-Za-z_]\w*)['"`]\s*\]/g,
    /\bDeno\.env\.get\(\s*['"`]([A-Za-z_]\w*)['"`]/g,
  ],
  python: [/\benviron(?:\.get\(|\[)\s*[rf]?['"]([A-Za-z_]\w*)['"]/g, /\bgetenv\(\s*[rf]?['"]([A-Za-z_]\w*)['"]/g],
  go: [/\bos\.(?:Getenv|LookupEnv)\(\s*"([A-Za-z_]\w*)"/g],
};

const SECRET =
  /TOKEN|(?:^|_)(?:API_?)?KEY(?:_|$)|APIKEY|SECRET|PASSWORD|PASSWD|CREDENTIAL|(?:^|_)DSN$|(?:^|_)PAT$|CONNECTION_STRING|(?:DATABASE|MONGO\w*|REDIS|POSTGRES\w*)_UR[IL]$/i;

export function isSecretName(name: string): boolean {
  return SECRET.test(name);
}

export function outsideOf(files: readonly SourceFile[]): Outside {
  const hosts = new Map<string, number>();
  const variables = new Set<string>();
  for (const { language, root } of files) {
    for (const node of STRINGS[language].flatMap((kind) => all(root, kind))) {
      // A docstring is a statement of its own.
      if (node.parent()?.parent()?.is('expression_statement')) continue;
      for (const [, host] of node.text().matchAll(/\b(?:https?|wss?):\/\/([A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+)/g)) {
        const name = host!.toLowerCase();
        if (!NOISE.test(name)) hosts.set(name, (hosts.get(name) ?? 0) + 1);
      }
    }
    const text = root.text();
    for (const form of VARIABLES[language]) for (const [, name] of text.matchAll(form)) variables.add(name!);
    if (language === 'typescript')
      for (const pattern of all(root, 'object_pattern')) {
        // const { TOKEN, OTHER: other } = process.env
        if (pattern.parent()?.field('value')?.text() !== 'process.env') continue;
        for (const child of pattern.children().filter((one) => one.isNamed()))
          variables.add((child.field('key') ?? child).text().split(/[\s=]/)[0]!);
      }
  }
  // Those that are named most often come first.
  return { hosts: [...hosts].toSorted((a, b) => b[1] - a[1]).map(([host]) => host), variables: [...variables].sort() };
}
