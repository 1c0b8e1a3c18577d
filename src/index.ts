/** Toolgate as a library. What is exported here is public; the CLI uses nothing else. */

export { findTool } from './access/find.ts';
export type { ListKind } from './access/lists.ts';
export { canonicalName, isMeant, type ToolReference, type Toolset } from './access/toolset.ts';
export type { View } from './access/view.ts';
export type { Caller, CallerOptions } from './calls/caller.ts';
export type { Catalog, Problem } from './catalog/catalog.ts';
export type { Entry } from './catalog/entry.ts';
export type { Kind } from './catalog/item.ts';
export { didYouMean } from './catalog/similar.ts';
export type { Config, Launch, ServerConfig } from './config/config.ts';
export { configJsonSchema } from './config/json-schema.ts';
export { configFromValue, type LoadOptions, loadConfig } from './config/load.ts';
export { refIdOf } from './controls/equip.ts';
export { type HttpDoor, type HttpDoorOptions, openHttpDoor } from './doors/http/server.ts';
export { type LocalCallOptions, type LocalDoor, openLocalDoor, RelayedError } from './doors/local.ts';
export { openStdioDoor, type StdioDoor } from './doors/stdio.ts';
export { type ErrorBody, type ErrorCode, GatewayError, messageOf } from './errors.ts';
export type { EventMap, EventName, Events, Listener } from './events.ts';
export { type Following, followConfig } from './follow.ts';
export { createGateway, type Gateway } from './gateway.ts';
export type { FleetReport, ServerStatus } from './sources/fleet.ts';
export type { Shelf, ShelvedToolset } from './store/shelf.ts';
export { TOOLSET_NAME } from './store/toolsets.ts';
export { VERSION } from './version.ts';
