/** Builds the views of all callers. Callers that see the same share one view, and with it the printed lists. */
import { BoundedMap } from '../base/bounded-map.ts';
import { sha256 } from '../base/hash.ts';
import { getOrMake, memo } from '../base/memo.ts';
import type { Catalog } from '../catalog/catalog.ts';
import type { Owner } from '../catalog/entry.ts';
import { hasNamespace, narrowToNamespace } from '../catalog/narrow.ts';
import type { UriStyle } from '../catalog/uris.ts';
import type { Config } from '../config/config.ts';
import type { Task } from '../config/task.ts';
import { narrowToTask, taskKey } from '../plans/narrow-to-task.ts';
import { type ClientTraits, missesNewTools } from '../protocol/known-clients.ts';
import type { Subject } from './circumstances.ts';
import { narrowToPermission, type Permission } from './permission.ts';
import type { Selection } from './selection.ts';
import { isBySize, type Showing, showingFor } from './showing.ts';
import { buildView, type View, type ViewControls } from './view.ts';

/** The current state of a gateway. Each part may be replaced. */
export interface ViewContext {
  catalog(): Catalog;
  config(): Config;
  /** Toolgate's own tools, for the way in which `auto` shows the others; null without `auto`. */
  controls(showing: Showing | null): ViewControls;
  /** What a subject may use now; null for everything. */
  permissionOf(subject: Subject): Permission | null;
}

/** The scope from which a caller sees the catalog. */
export interface Viewpoint {
  /** Sources of its own; null for those that all callers share. */
  readonly sources: { catalog(): Catalog } | null;
  readonly namespace: string | null;
  /** It sees only what every one of these tasks needs. */
  readonly tasks: readonly Task[];
}

export interface ViewRequest extends Viewpoint {
  readonly permission: Permission | null;
  readonly selection: Selection;
  /** Whether the request names the toolset. Then that toolset is all there is. */
  readonly isFixed: boolean;
  /** Whether it has Toolgate's own tools. Inside a namespace or a task there are never any. */
  readonly controls: boolean;
  /** How `auto` shows the tools; null if the configuration does not say `auto`. */
  readonly showing: Showing | null;
  /** The kind of client that it is for. */
  readonly client: ClientTraits;
}

export interface Views {
  /** `seen` names the tools that the client has seen: those that are there keep this order, and the rest follows. */
  of(request: ViewRequest, seen?: readonly string[]): View;
  /**
   * How `auto` shows the tools to a caller, by what it may see from there. `before` is how it did until now, or null at
   * first. Null if the configuration does not say `auto`.
   */
  showing(from: Viewpoint, permission: Permission | null, before: Showing | null): Showing | null;
  /** Drops all views because a new catalog, configuration or set of controls is in force. */
  forget(): void;
  /** Whether a caller may know about the server: one of its items must be visible from there. */
  sees(from: Viewpoint, permission: Permission | null, server: Pick<Owner, 'key' | 'namespace'>): boolean;
  /** Everything that a permission covers, in every task and selection. */
  allowed(permission: Permission | null): Catalog;
  /** Whether the subject may know that the namespace exists. */
  knows(subject: Subject, namespace: string): boolean;
}

/** With a fixed toolset, and inside a namespace or a task, there is no selection to change. */
function noControls({ toolset }: Selection): ViewControls {
  return { entries: () => [], alias: () => undefined, advice: () => toolsetAdvice(toolset) };
}

const FIXED_HINT =
  ' This connection names its toolset, and has the tools of that one only. Connect to /mcp without a toolset to choose.';

function toolsetAdvice(toolset: Selection['toolset']): string {
  if (toolset === null) return '';
  if (toolset.standing === 'gone') return `The toolset "${toolset.name}" of this connection does not exist any more.`;
  return `It is not in the toolset "${toolset.name}" of this connection.`;
}

/** The most views kept. Clients can invent tasks, and each task creates views. */
const MOST = 500;

export function createViews({ catalog, config, controls, permissionOf }: ViewContext): Views {
  const newMemory = () => memo((_: Catalog) => new BoundedMap<string, View>(MOST));
  let known = newMemory();

  const catalogOf = ({ sources }: Viewpoint) => sources?.catalog() ?? catalog();

  function narrowed(all: Catalog, permission: Permission | null, tasks: readonly Task[]): Catalog {
    const { rules } = config().tasks;
    return tasks.reduce((inside, task) => narrowToTask(inside, task, rules()), narrowToPermission(all, permission));
  }

  /** What is cut from the instructions can be read inside a namespace or a task too. */
  function controlsFor(request: ViewRequest): ViewControls {
    const { controls: has, namespace, tasks, showing, selection, isFixed } = request;
    if (!has) return noControls(selection);
    const own = controls(showing);
    if (namespace === null && tasks.length === 0 && !isFixed) return own;
    const none = { ...noControls(selection), resources: own.resources };
    if (!isFixed) return none;
    const isOwn = (name: string) =>
      own.alias(name) !== undefined ||
      own.entries(catalog(), selection, request.client).some((one) => one.name === name);
    return { ...none, hint: (_, name) => (isOwn(name) ? FIXED_HINT : '') };
  }

  function build(all: Catalog, request: ViewRequest, seen: readonly string[] = []): View {
    const { permission, selection, namespace, tasks, client } = request;
    const visible = narrowed(all, permission, tasks);
    const inside = namespace === null ? visible : narrowToNamespace(visible, namespace, config());
    return buildView(inside, selection, controlsFor(request), permission, client, uriStyleFor(config(), client), seen);
  }

  return {
    of(request, seen = []) {
      const all = catalogOf(request);
      const key = keyOf(request);
      const view = getOrMake(known(all), key, () => build(all, request));
      const names = movedNames(view, seen);
      if (names === null) return view;
      return getOrMake(known(all), `${sha256(names.join('\n'))}\n${key}`, () => build(all, request, names));
    },
    showing(from, permission, before) {
      if (!isBySize(config())) return null;
      return showingFor(narrowed(catalogOf(from), permission, from.tasks), before, !config().searchesMany);
    },
    forget() {
      known = newMemory();
    },
    sees(from, permission, { key, namespace }) {
      if (from.namespace !== null && from.namespace !== namespace) return false;
      if (permission === null && from.tasks.length === 0) return true;
      const { sources, away } = narrowed(catalogOf(from), permission, from.tasks);
      return sources.has(key) || away.some((source) => source.key === key);
    },
    allowed: (permission) => narrowToPermission(catalog(), permission),
    knows(subject, namespace) {
      const permission = permissionOf(subject);
      return permission === null || hasNamespace(narrowToPermission(catalog(), permission), namespace);
    },
  };
}

/** The tools that a client has seen and still sees, in their order; null if the view has them in that order already. */
function movedNames({ entries }: View, seen: readonly string[]): readonly string[] | null {
  const now = [...entries.tool.keys()];
  const kept = seen.filter((name) => entries.tool.has(name));
  return kept.every((name, i) => name === now[i]) ? null : kept;
}

/** Clients that are not known to refuse any URI get the exposed ones. */
function uriStyleFor({ uriStyle }: Config, { uris }: ClientTraits): UriStyle {
  if (uriStyle !== 'auto') return uriStyle;
  return uris === 'legal' ? 'scheme' : 'join';
}

/** None of the parts contains a line break. */
function keyOf({ permission, selection, isFixed, namespace, tasks, controls, client, showing }: ViewRequest): string {
  const inside = namespace === null ? '' : `in ${namespace}`;
  const key = `${controls}${isFixed}${showing ?? ''}\n${clientKey(client)}\n${inside}\n${permission?.key ?? ''}\n${selection.key}`;
  return tasks.length === 0 ? key : `${tasks.map(taskKey).join(' ')}\n${key}`;
}

/** The traits that change a list. Clients that are equal in these share their views. */
const clientKey = memo(
  (client: ClientTraits) => `${client.description} ${client.instructions} ${client.uris} ${missesNewTools(client)}`,
);
