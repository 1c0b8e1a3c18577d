/** The manager's tools for secrets. No value passes through them, in either direction. */
import { existsSync } from 'node:fs';
import * as z from 'zod';
import { GatewayError } from '../../base/errors.ts';
import { didYouMean } from '../../base/text.ts';
import { openSecretStore } from '../../store/secrets.ts';
import { findManaged } from '../managed-namespace.ts';
import { type ManagerContext, type ManagerTool, managerTool, READS, REMOVES, WRITES } from '../manager-context.ts';
import { secretsOf } from '../namespace-list.ts';

const key = z.string().describe('Secret name. Examples: "GITHUB_TOKEN", "OPENAI_API_KEY"');

export function secretTools(manager: ManagerContext): ManagerTool[] {
  const store = () => {
    const { dataDir, vault } = manager.config();
    return openSecretStore(dataDir, vault);
  };

  /** Null for all namespaces. Throws if the namespace does not exist. */
  const scopeOf = async (namespace: string | null | undefined): Promise<string | null> =>
    namespace == null ? null : (await findManaged(manager.config(), namespace)).name;

  return [
    managerTool({
      name: 'prepare_secret',
      title: 'Prepare a secret',
      description: `Create a placeholder entry for a secret in the secrets store. This updates metadata only. The user sets the real value in a terminal. This tool NEVER accepts or returns actual secret values. Never ask the user to tell you the value.

IMPORTANT: After calling this, you MUST tell the user to run the command in "instructions":
  toolgate secrets set --key {key} --scope {scope}

Returns: {"key": "GITHUB_TOKEN", "scope": "global", "meta_file": "/data/secrets.meta.yaml", "instructions": "Run: toolgate secrets set --key GITHUB_TOKEN --scope global"}

After the user sets the value: Call reload_core() to load the new secret.`,
      inputSchema: z.strictObject({
        key,
        namespace: z
          .string()
          .nullable()
          .optional()
          .describe(
            'If set, the secret is scoped to this namespace only. If null/omitted, the secret is global (available to all namespaces).',
          ),
      }),
      annotations: { ...WRITES, idempotentHint: true },
      async execute({ key: name, namespace }) {
        const scope = await scopeOf(namespace);
        const secrets = store();
        await secrets.prepare(name, scope);
        const shown = scope ?? 'global';
        return {
          key: name,
          scope: shown,
          meta_file: secrets.metaFile,
          instructions: `Run: ${secretCommand(name, shown, manager.config().file, existsSync('/.dockerenv'))}`,
        };
      },
    }),
    managerTool({
      name: 'list_secrets',
      title: 'List secrets',
      description: `List all configured secrets and their status. Shows only key names and whether they are configured or still placeholders. NEVER shows actual values.

Returns: a list of objects: [{"key": "GITHUB_TOKEN", "scope": "global", "status": "set"}, {"key": "AWS_KEY", "scope": "devops", "status": "placeholder"}]
status is one of:
- "set": a value exists in the encrypted store
- "placeholder": the key is known, but its value is not set yet`,
      inputSchema: z.strictObject({
        namespace: z
          .string()
          .nullable()
          .optional()
          .describe(
            "Filter to a specific namespace's secrets. If null/omitted, shows all secrets (global + all namespaces).",
          ),
      }),
      outputSchema: z.array(z.object({ key: z.string(), scope: z.string(), status: z.string() })),
      annotations: READS,
      async execute({ namespace }) {
        const scope = await scopeOf(namespace);
        return (await store().list())
          .filter((one) => scope === null || one.scope === scope)
          .map(({ name, scope: of, status }) => ({ key: name, scope: of ?? 'global', status }));
      },
    }),
    managerTool({
      name: 'remove_secret',
      title: 'Remove a secret',
      description: `Remove a secret entry from the secrets store entirely. After removing, call reload_core() to apply the change.

Returns: {"removed": true, "key": "GITHUB_TOKEN", "scope": "global"}`,
      inputSchema: z.strictObject({
        key: z.string().describe('Secret key to remove.'),
        namespace: z.string().nullable().optional().describe('Scope. Null = global.'),
      }),
      annotations: REMOVES,
      async execute({ key: name, namespace }) {
        // The namespace may be gone already.
        const scope = namespace ?? null;
        const secrets = store();
        if (!(await secrets.remove(name, scope))) {
          const names = (await secrets.list()).filter((one) => one.scope === scope).map((one) => one.name);
          const where = scope === null ? 'for all namespaces' : `of the namespace "${scope}"`;
          throw new GatewayError(
            'usage',
            `There is no secret ${name} ${where}.${didYouMean(name, names)} See list_secrets.`,
          );
        }
        return { removed: true, key: name, scope: scope ?? 'global' };
      },
    }),
    managerTool({
      name: 'check_secrets',
      title: 'Check the secrets of a namespace',
      description: `Check whether a namespace has all the secrets it needs. Reads the namespace's tooldock.yaml to find declared required secrets, then checks the secrets store. Use this after installing a namespace to know if additional secrets need to be configured.

Returns: {"namespace": "github", "satisfied": ["GITHUB_TOKEN"], "missing": ["SLACK_TOKEN"], "placeholders": ["AWS_KEY"]}
- satisfied: secrets that are properly configured
- missing: secrets that don't exist in the store at all
- placeholders: secrets that have metadata placeholders but no encrypted value yet

Next steps based on result:
- For each "missing": call prepare_secret(key) then tell the user to run the command in its "instructions"
- For each "placeholder": tell the user to run toolgate secrets set for that key
- When all are "satisfied": call reload_core() and the namespace is ready`,
      inputSchema: z.strictObject({ namespace: z.string().describe('Namespace to check.') }),
      annotations: READS,
      async execute({ namespace }) {
        const managed = await findManaged(manager.config(), namespace);
        return { namespace, ...secretsOf(managed, await store().list()) };
      },
    }),
  ];
}

/** What a person runs to set a secret. Keys and names of namespaces need no quotes. */
export function secretCommand(name: string, scope: string, file: string | null, isContainer: boolean): string {
  const command = `toolgate secrets set --key ${name} --scope ${scope}`;
  if (isContainer) return `docker exec -it tooldock-manager ${command}`;
  if (file === null) return command;
  return `${command} --config ${/^[\w./-]+$/.test(file) ? file : JSON.stringify(file)}`;
}
