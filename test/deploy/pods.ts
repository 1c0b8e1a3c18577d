/**
 * Runs the containers of manifests as processes: the same command, arguments, variables and mounted files, in separate
 * folders.
 */
import { mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { childEnv } from '../support/child.ts';
import { tempFolder } from '../support/temp.ts';

export interface Meta {
  readonly name: string;
  readonly labels?: Record<string, string>;
}

export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: Meta;
  readonly data?: Record<string, string>;
  readonly spec?: unknown;
}

interface KeyRef {
  readonly name: string;
  readonly key: string;
}

export interface Probe {
  readonly httpGet: { readonly path: string; readonly port: string | number };
}

export interface Container {
  readonly name: string;
  readonly image: string;
  readonly command: readonly string[];
  readonly args: readonly string[];
  readonly ports?: readonly { readonly name: string; readonly containerPort: number }[];
  readonly env?: readonly {
    readonly name: string;
    readonly value?: string;
    readonly valueFrom?: { readonly secretKeyRef?: KeyRef; readonly configMapKeyRef?: KeyRef };
  }[];
  readonly volumeMounts?: readonly { readonly name: string; readonly mountPath: string; readonly readOnly?: boolean }[];
  readonly livenessProbe?: Probe;
  readonly readinessProbe?: Probe;
  readonly startupProbe?: Probe;
  readonly securityContext?: Record<string, unknown>;
  readonly resources?: unknown;
}

export interface PodSpec {
  readonly automountServiceAccountToken?: boolean;
  readonly terminationGracePeriodSeconds?: number;
  readonly securityContext?: Record<string, unknown>;
  readonly initContainers?: readonly Container[];
  readonly containers: readonly Container[];
  readonly volumes?: readonly {
    readonly name: string;
    readonly configMap?: { readonly name: string };
    readonly secret?: { readonly secretName: string };
    readonly emptyDir?: object;
  }[];
}

/** The data of ConfigMaps and Secrets, by name. */
export type Store = Readonly<Record<string, Readonly<Record<string, string>>>>;

export interface Pod {
  /** A folder for each volume. */
  readonly folders: ReadonlyMap<string, string>;
  /** The command and environment of a container, with mount paths and `replaced` texts replaced by real ones. */
  run(container: Container): { readonly command: readonly string[]; readonly env: Record<string, string> };
}

export function createPod(
  spec: PodSpec,
  configMaps: Store,
  secrets: Store,
  path: string,
  replaced: [string, string][],
): Pod {
  const folders = new Map(
    (spec.volumes ?? []).map(({ name, configMap, secret }) => {
      const folder = tempFolder();
      const data = configMap ? configMaps[configMap.name] : secret ? secrets[secret.secretName] : {};
      if (data === undefined) throw new Error(`nothing has what the volume ${name} is made of`);
      if (configMap ?? secret) project(folder, data);
      return [name, folder];
    }),
  );
  const entryOf = (store: Store, { name, key }: KeyRef): string => {
    const value = store[name]?.[key];
    if (value === undefined) throw new Error(`there is no ${key} in ${name}`);
    return value;
  };
  return {
    folders,
    run({ command, args, env = [], volumeMounts = [] }) {
      const mounts = volumeMounts.map(({ name, mountPath }) => [mountPath, folders.get(name)!] as const);
      const texts = new Map([...mounts, ...replaced]);
      // All in one pass, because a replacement may contain the text of another one.
      const pattern = new RegExp([...texts.keys()].map((text) => text.replaceAll('.', '\\.')).join('|'), 'g');
      const real = (text: string) => (texts.size === 0 ? text : text.replace(pattern, (found) => texts.get(found)!));
      const given = env.map(({ name, value, valueFrom }) => {
        if (valueFrom?.secretKeyRef) return [name, entryOf(secrets, valueFrom.secretKeyRef)];
        if (valueFrom?.configMapKeyRef) return [name, entryOf(configMaps, valueFrom.configMapKeyRef)];
        return [name, real(value!)];
      });
      const variables = Object.fromEntries(given) as Record<string, string>;
      const words = [...command, ...args].map((word) =>
        real(word).replaceAll(/\$\((\w+)\)/g, (whole, name: string) => variables[name] ?? whole),
      );
      return { command: words, env: childEnv({ PATH: path, ...variables }) };
    },
  };
}

/** Writes files the way Kubernetes mounts them: symlinks into a folder that is swapped as a whole. */
export function project(folder: string, data: Readonly<Record<string, string>>): void {
  const version = `..${process.hrtime.bigint()}`;
  mkdirSync(join(folder, version));
  for (const [name, text] of Object.entries(data)) writeFileSync(join(folder, version, name), text);
  symlinkSync(version, join(folder, '..data_tmp'));
  renameSync(join(folder, '..data_tmp'), join(folder, '..data'));
  for (const name of Object.keys(data)) {
    try {
      symlinkSync(join('..data', name), join(folder, name));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
  }
}
