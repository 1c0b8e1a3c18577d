/** The manager's tools for packages. */
import * as z from 'zod';
import { addPackage, installOwnPackages, installPackages, listPackages } from '../dependencies.ts';
import {
  INSTALLS,
  type ManagerContext,
  type ManagerTool,
  managerTool,
  packageOptions,
  READS,
} from '../manager-context.ts';

export function dependencyTools(manager: ManagerContext): ManagerTool[] {
  return [
    managerTool({
      name: 'install_requirements',
      title: 'Install packages',
      description: `Install all packages listed in a namespace's requirements.txt (Python) or package.json (TypeScript) into that namespace's own environment. Each namespace has its own, so dependencies are fully isolated. No install scripts are run.

This is an explicit sync command. reload_core() also performs sync automatically when the requirements changed. It may take minutes; progress is reported. After installing, call reload_core() so the worker restarts with updated packages.

Returns on success: {"installed": true, "namespace": "github", "packages": ["httpx>=0.28.0"]}
Returns on error: {"installed": false, "error": "pip install failed", "details": "..."}`,
      inputSchema: z.strictObject({ namespace: z.string().describe('Namespace whose requirements to install.') }),
      annotations: { ...INSTALLS, idempotentHint: true },
      async execute({ namespace }, context) {
        const outcome = await installPackages(manager.config(), namespace, packageOptions(manager, context));
        return outcome.installed ? { installed: true, namespace, packages: outcome.packages } : outcome;
      },
    }),
    managerTool({
      name: 'add_requirement',
      title: 'Add a package',
      description: `Add a single package to a namespace's requirements.txt (Python) or package.json (TypeScript) and sync the namespace environment immediately. If the file doesn't exist yet, it is created. If the package is listed already, its version is replaced. If it cannot be installed, the file stays as it was.

Returns: {"added": true, "package": "httpx>=0.28.0", "namespace": "github"}
Returns on error: {"added": false, "package": "...", "namespace": "github", "error": "pip install failed", "details": "..."}

After calling: Call reload_core() to restart the worker with the updated environment.`,
      inputSchema: z.strictObject({
        namespace: z.string().describe('Target namespace.'),
        package: z
          .string()
          .describe(
            'Package specifier. Python: "httpx", "httpx>=0.28.0", "beautifulsoup4==4.12.0". TypeScript: "date-fns", "date-fns@^4", "@scope/name@1.2.3".',
          ),
        language: z
          .enum(['python', 'typescript'])
          .optional()
          .describe(
            'Only if the namespace has tools in both languages, or none yet. Default: that of its files, else python.',
          ),
      }),
      annotations: INSTALLS,
      async execute({ namespace, package: wanted, language }, context) {
        const options = packageOptions(manager, context);
        const outcome = await addPackage(manager.config(), namespace, wanted, language ?? null, options);
        if (outcome.installed) return { added: true, package: wanted, namespace };
        return { added: false, package: wanted, namespace, error: outcome.error, details: outcome.details };
      },
    }),
    managerTool({
      name: 'list_requirements',
      title: 'List packages',
      description: `Show the packages that a namespace asks for: the contents of its requirements.txt, and the dependencies of its package.json. Returns an empty list if neither exists.

Returns: {"namespace": "github", "packages": ["httpx>=0.28.0", "beautifulsoup4"]}`,
      inputSchema: z.strictObject({ namespace: z.string().describe('Namespace to check.') }),
      annotations: READS,
      async execute({ namespace }) {
        const { python, typescript } = await listPackages(manager.config(), namespace);
        return { namespace, packages: [...python, ...typescript] };
      },
    }),
    managerTool({
      name: 'install_pip_packages',
      title: "Install packages for the manager's own use",
      description: `Install Python packages into the manager's own environment. Use this only if you need a package for analysis (e.g. a parser for a specific language). For namespace tool dependencies, use add_requirement instead. They go into an environment of their own in the data folder; neither the core nor any namespace can see them.

Returns: {"installed": true, "packages": ["tree-sitter", "tree-sitter-typescript"]}
Returns on error: {"installed": false, "error": "pip install failed", "details": "..."}`,
      inputSchema: z.strictObject({
        packages: z
          .array(z.string())
          .min(1)
          .max(50)
          .describe('Package specifiers. Example: ["tree-sitter", "tree-sitter-typescript"]'),
      }),
      annotations: INSTALLS,
      execute: ({ packages }, context) =>
        installOwnPackages(manager.config(), packages, packageOptions(manager, context)),
    }),
  ];
}
