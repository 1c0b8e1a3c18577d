/** The configuration after reading: every default filled in, every path absolute, every string expanded. */

import type { CallLimits, ToolLimits } from './limits.ts';
import type { MacroConfig } from './macros.ts';
import type { PolicyConfig } from './policy.ts';
import type { RawConfig } from './raw-config.ts';
import type { SecurityConfig } from './security.ts';
import type { TasksConfig } from './task-rules.ts';

/** How to reach a server. Where a secret is to stand, its texts have a place for it. Two servers with equal launches are the same process or endpoint. */
export type Launch =
  | {
      readonly kind: 'stdio';
      /** The executable and its arguments, run without a shell; a shell line becomes `sh -c LINE`. */
      readonly file: string;
      readonly args: readonly string[];
      readonly env: Readonly<Record<string, string>>;
      readonly cwd: string;
      /** Variables of ours that it does not inherit, because they are credentials; absent where there are none. */
      readonly withheld?: readonly string[];
    }
  | {
      readonly kind: 'http';
      readonly url: string;
      readonly headers: Readonly<Record<string, string>>;
      /** Streamable HTTP, or HTTP+SSE of the first revision; absent where that is to be found out. */
      readonly transport?: 'http' | 'sse';
    }
  | {
      readonly kind: 'folder';
      /** The folder of tool files, and those of which language in it are meant. */
      readonly folder: string;
      readonly language: 'python' | 'typescript';
      readonly namespace: string;
      readonly dataDir: string;
      /** What its tools find in their environment, beside PATH, HOME and LANG; secrets go before the defaults. */
      readonly env: Readonly<Record<string, string>>;
      readonly defaults: Readonly<Record<string, string>>;
      /** Names of the secrets that it does not start without. */
      readonly secrets: readonly string[];
      /** Changes with what is in the folder. */
      readonly version: string;
      readonly isolation: Isolation;
      /** Bytes; null for any number. */
      readonly memory: number | null;
    }
  | {
      /** Functions of the program itself: nothing is started. */
      readonly kind: 'inline';
    };

/** Whether processes of folders are kept apart by bubblewrap: where it works, always or not at all, or never. */
export type Isolation = 'auto' | 'required' | 'off';

/** One server of a configuration. */
export interface ServerConfig {
  /** Unique in the configuration: the namespace, or `server-N` where that is empty or taken. Names the server in logs. */
  readonly key: string;
  readonly namespace: string;
  readonly launch: Launch;
  /** Hash of `launch` and `share`: names the offer kept on disk and tells whether a reload has to restart the server. */
  readonly launchHash: string;
  readonly description: string;
  readonly enabled: boolean;
  readonly required: boolean;
  readonly start: 'eager' | 'lazy';
  /** Milliseconds without a call after which the server is stopped; null keeps it running. */
  readonly idleStop: number | null;
  /** Whether all callers share it, or each has a connection to itself. */
  readonly share: 'project' | 'session';
  /** Milliseconds that one call may go without a sign of life. */
  readonly timeout: number;
  /** Milliseconds that one call may take in all. */
  readonly totalTimeout: number;
  /** Milliseconds that start-up and listing may take. */
  readonly startTimeout: number;
  /** Milliseconds between two looks at whether it still answers; 0 for none. */
  readonly healthInterval: number;
  /** How much its calls may take, all together; its time-outs stand above. */
  readonly limits: CallLimits;
  /** The same for single tools, by its own names for them. */
  readonly tools: readonly ToolLimits[];
}

/** A folder of tools that the configuration names. What is in it decides how many workers it has. */
export interface FolderConfig extends Omit<ServerConfig, 'launch' | 'launchHash'> {
  readonly folder: string;
  readonly env: Readonly<Record<string, string>>;
  /** Bytes that one worker may have. */
  readonly memory: number;
  readonly isolation: Isolation;
}

/** Folders of tools: what holds for those in the data folder, and the others. */
export interface FoldersConfig {
  readonly watch: boolean;
  /** Milliseconds. */
  readonly debounce: number;
  readonly timeout: number;
  readonly startTimeout: number;
  readonly concurrency: number;
  /** Bytes. */
  readonly memory: number;
  readonly isolation: Isolation;
  readonly named: readonly FolderConfig[];
}

export type Control = 'activate' | 'equip' | 'request' | 'prompt';

/** A toolset that the configuration has. */
export interface ToolsetConfig {
  readonly name: string;
  readonly description: string;
  readonly tools: readonly { readonly namespacedName: string }[];
  readonly toolNotes: readonly never[];
}

export interface HttpConfig {
  readonly host: string;
  readonly port: number;
  /** Accepted values of `Origin` beside the gateway's own. */
  readonly allowedOrigins: readonly string[];
  /** Accepted host names of `Host` beside the gateway's own. */
  readonly allowedHosts: readonly string[];
  /** Milliseconds that calls under way have to finish at the end. */
  readonly drain: number;
  /** Milliseconds after which an unused session is forgotten. */
  readonly sessionTtl: number;
  readonly maxSessions: number;
  /** Whether HTTP+SSE of the first revision is offered too. */
  readonly sse: boolean;
  /** Whether clients have to name the namespace that they are to see. */
  readonly requireNamespace: boolean;
  /** Whether calls are taken at addresses as mcpo has them. */
  readonly mcpo: boolean;
  /** The address of `/mcp` as clients know it; null where it is that of `host` and `port`. */
  readonly publicUrl: string | null;
  /** Agents that may see what is about the whole gateway. */
  readonly admins: readonly string[];
  /** Whether the header `X-Agent-Id` names the agent. */
  readonly trustAgentHeader: boolean;
  /** Who may have everything looked at again: whoever has the token (null: nobody), from these networks. */
  readonly manager: { readonly token: () => string | null; readonly networks: readonly string[] };
  readonly jwt: JwtConfig | null;
}

/** Which tokens of an identity provider are good here. */
export interface JwtConfig {
  readonly issuer: string;
  /** Null: the public address. */
  readonly audience: readonly string[] | null;
  /** Null: what the issuer's metadata says. */
  readonly jwksUri: string | null;
  readonly algorithms: readonly string[];
  readonly agentClaim: string;
  /** Patterns over the claim, and the agents they stand for; null where the claim is the agent's name. */
  readonly agents: readonly { readonly claim: string; readonly agent: string }[] | null;
  readonly requiredScopes: readonly string[];
  /** Milliseconds. */
  readonly clockSkew: number;
}

/** An agent that the configuration has. */
export interface AgentConfig {
  readonly name: string;
  readonly description: string;
  /** SHA-256 hashes. */
  readonly tokens: readonly string[];
}

export interface LimitsConfig {
  /** Bytes of one request. */
  readonly body: number;
  /** Nesting of one request. */
  readonly depth: number;
  /** Bytes of one message of an upstream server. */
  readonly message: number;
  /** Most items on one page of a list; null puts all on one. */
  readonly page: number | null;
  /** Bytes of one result; null for any number. */
  readonly maxResult: number | null;
  /** Bytes of events kept for each session. */
  readonly replay: number;
  /** Bytes that a client may leave unread, and that all may together. */
  readonly unread: number;
  readonly unreadTotal: number;
}

export interface AuditConfig {
  /** Null: as the way in wants it. */
  readonly enabled: boolean | null;
  readonly dir: string;
  /** Days. */
  readonly retention: number;
  readonly arguments: boolean;
  readonly results: boolean;
  /** Bytes. */
  readonly maxValue: number;
  readonly onFailure: 'continue' | 'stop';
}

/** Where the key of the secrets is. */
export interface VaultConfig {
  /** The passphrase itself; null where it is in a file, or nowhere. A function, so that whoever prints a configuration does not print it. */
  readonly key: () => string | null;
  readonly keyFile: string | null;
  /** Whether there may be secrets without a key. */
  readonly allowInsecure: boolean;
  /** Whether secrets are taken out of what servers answer. */
  readonly redactResults: boolean;
}

/** A configuration that has been read and checked. Made by `loadConfig` or `configFromValue`, never by hand. */
export interface Config {
  /** The file it was read from; null for a configuration given in code. */
  readonly file: string | null;
  readonly servers: readonly ServerConfig[];
  /** Patterns over exposed names; null where the configuration has none. */
  readonly activeToolsets: readonly string[] | null;
  readonly controls: readonly Control[];
  readonly toolsets: readonly ToolsetConfig[];
  /** The toolset to begin with where none was equipped before. */
  readonly equipped: string | null;
  /** Whether each caller's choice is its own, or everybody's. */
  readonly selection: 'own' | 'shared';
  /** How exposed names are made, and how long they get; null for any length. */
  readonly names: 'join' | 'flat';
  readonly nameLimit: number | null;
  readonly startWait: number;
  /** The revisions of the protocol that clients may speak. */
  readonly revisions: readonly string[];
  /** What a person has to approve. */
  readonly security: SecurityConfig;
  /** Who may use what; null where everybody may use everything. */
  readonly policy: PolicyConfig | null;
  /** Which tools tasks need. */
  readonly tasks: TasksConfig;
  /** Tools made of other tools. */
  readonly macros: readonly MacroConfig[];
  readonly dataDir: string;
  readonly folders: FoldersConfig;
  readonly http: HttpConfig;
  readonly agents: readonly AgentConfig[];
  readonly limits: LimitsConfig;
  readonly audit: AuditConfig;
  readonly vault: VaultConfig;
  /** Values that must not be told. A function, so that whoever prints a configuration does not print them. */
  readonly secrets: () => readonly string[];
  /**
   * As it is written, before anything was expanded. A function for the same reason.
   * @internal
   */
  readonly written: () => RawConfig;
  /** What the reader should know: keys that were ignored, files that were passed over. */
  readonly notices: readonly string[];
}
