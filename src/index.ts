/** Toolgate as a library. What is exported here is public; the CLI uses nothing else. */

export { confirmationsFor } from './access/confirm.ts';
export { type EntryDecision, explainName } from './access/explain.ts';
export { findTool } from './access/find.ts';
export { idleRules } from './access/idle-rules.ts';
export type { ListKind } from './access/lists.ts';
export { type Plan, type PlannedServer, type PlannedTool, planTask, requireProfile } from './access/plan.ts';
export { type PlanConfig, planConfig } from './access/plan-config.ts';
export { CONFIG_MAP_NAME, configMapName, planConfigMap, planJson, planToml } from './access/plan-text.ts';
export type { Decision, Finding } from './access/policy.ts';
export { canonicalName, isMeant, type ToolReference, type Toolset } from './access/toolset.ts';
export type { View } from './access/view.ts';
export type { AuditFigures } from './calls/audit.ts';
export type { Caller, CallerOptions } from './calls/caller.ts';
export { counter, type Family, gauge, type Labels, type Sample } from './calls/families.ts';
export type { AgentFigures, CallKind, Counts, EntryFigures, Figures } from './calls/figures.ts';
export type { BreakerState } from './calls/limits/breaker.ts';
export type { WatchedServer } from './calls/limits/lanes.ts';
export { type LocalCallOptions, type LocalDoor, openLocalDoor, type Progress } from './calls/local.ts';
export { type LogCallsOptions, logCalls } from './calls/logging.ts';
export { DRY_RUN } from './calls/macro-run.ts';
export type { CallResult, Middleware, MiddlewareCall, Next } from './calls/middleware.ts';
export type {
  Asking,
  ContentBlock,
  ProgramCallOptions,
  ResourceContents,
  Seen,
  SeenPrompt,
  SeenResource,
  SeenTemplate,
  SeenTool,
  ToolCallResult,
} from './calls/program.ts';
export { RelayedError } from './calls/relayed.ts';
export type { CallSpan, Incoming, SentSpan, SpanEnd, Tracer } from './calls/span.ts';
export type { Duration, Outcome, TallyFigures } from './calls/tally.ts';
export { type Catalog, EMPTY_CATALOG, type Problem } from './catalog/catalog.ts';
export { CATEGORIES, type Category, categoryOf, type Effect } from './catalog/category.ts';
export type { Entry } from './catalog/entry.ts';
export type { Kind } from './catalog/item.ts';
export { didYouMean } from './catalog/similar.ts';
export type { AgentConfig, Config, JwtConfig, Launch, ServerConfig, VaultConfig } from './config/config.ts';
export { configJsonSchema } from './config/json-schema.ts';
export { secretsInArguments } from './config/launch.ts';
export { configFromValue, type LoadOptions, loadConfig } from './config/load.ts';
export type { MacroConfig, MacroStep } from './config/macros.ts';
export { loadTask, type Task, taskFromValue } from './config/task.ts';
export type { TaskProfile, TaskRule, TaskRules } from './config/task-rules.ts';
export { toLifetime } from './config/units.ts';
export { refIdOf } from './controls/equip.ts';
export { tokensOf } from './controls/toolset-report.ts';
export type { HttpDoor, HttpDoorOptions } from './doors/http/door.ts';
export type { Identify } from './doors/http/identity.ts';
export { issuerTrouble } from './doors/http/issuer.ts';
export { type ExpressMiddleware, expressMiddleware } from './doors/http/mount/express.ts';
export { type FastifyPlugin, fastifyPlugin } from './doors/http/mount/fastify.ts';
export { type FetchHandler, fetchHandler } from './doors/http/mount/fetch.ts';
export { type HonoMiddleware, honoMiddleware } from './doors/http/mount/hono.ts';
export { createHttpDoor, openHttpDoor } from './doors/http/open.ts';
export type { ListeningDoor, ListenOptions } from './doors/http/server.ts';
export { createVisitor, type Visitor, type VisitorOptions } from './doors/http/visitor.ts';
export { connectInMemory, type MemoryOptions, type MemoryTransport } from './doors/memory.ts';
export { openRemoteDoor, type RemoteDoor, type RemoteOptions } from './doors/remote/door.ts';
export { openStdioDoor, type StdioDoor } from './doors/stdio.ts';
export { type ErrorBody, type ErrorCode, GatewayError, messageOf } from './errors.ts';
export type { EventMap, EventName, Events, Listener } from './events.ts';
export { type FoundFolder, openGateway, scanFolders } from './folders.ts';
export { type Following, followConfig } from './follow.ts';
export { type FollowingSecrets, followSecrets } from './follow-secrets.ts';
export { createGateway } from './gateway.ts';
export type { Beside, Gateway, GatewayOptions } from './gateway-types.ts';
export {
  createMcpServer,
  createPermissionBasedMcpServer,
  type McpServerHandle,
  mountToolsets,
} from './library/create.ts';
export {
  type CustomEndpointDefinition,
  type CustomEndpointHandler,
  type CustomEndpointRequest,
  defineEndpoint,
  definePermissionAwareEndpoint,
  type EndpointErrorResponse,
  type HttpMethod,
  type PermissionAwareEndpointHandler,
  type PermissionAwareEndpointRequest,
} from './library/endpoints.ts';
export { ToolingError, type ToolingErrorCode } from './library/errors.ts';
export type { Logger } from './library/logger.ts';
export type { MountableServer, MountOptions, SdkServer } from './library/mount.ts';
export type {
  CreateMcpServerOptions,
  CreatePermissionBasedMcpServerOptions,
  HttpOptions,
} from './library/options.ts';
export type { FastifyLike, StartOptions } from './library/serve.ts';
export type { ServerInfo } from './library/server-info.ts';
export type { ToolsetStatus } from './library/status.ts';
export { fromFolder, fromServer, type ServerWords } from './library/tool-sources.ts';
export type {
  AnyTool,
  Authenticate,
  AuthenticatedClient,
  ClientRequest,
  ExposurePolicy,
  LoadedTools,
  Mode,
  ModuleLoader,
  PermissionConfig,
  SessionContextConfig,
  SessionRequestContext,
  ToolSetCatalog,
  ToolSetDefinition,
  ToolSource,
} from './library/types.ts';
export type { TraceContext } from './protocol/trace.ts';
export { SHORTEST as SHORTEST_SECRET } from './secrets/forms.ts';
export { environmentSecrets } from './secrets/known.ts';
export { nameProblem } from './secrets/names.ts';
export { createRedactor, type Redactor } from './secrets/redact.ts';
export type { FleetReport, ServerStatus } from './sources/fleet.ts';
export type { Vault } from './sources/vault.ts';
export { type Agent, type AgentStore, agentUnknown, openAgentStore } from './store/agents.ts';
export { decide as decideApproval, type Petition, readPetitions, type Verdict } from './store/approval-board.ts';
export {
  type AuditFilter,
  type AuditProblem,
  type AuditRecord,
  type ReadOptions,
  readAudit,
  verifyAudit,
} from './store/audit-read.ts';
export { type AuditUsage, createUsageCount, type UsageCount } from './store/audit-usage.ts';
export { operatorKey } from './store/operator.ts';
export { findKey, INSECURE_TEXT, keyMissing, readKeyFile, type SecretKey } from './store/secret-key.ts';
export { openSecretStore, type SecretChange, type SecretStore } from './store/secrets.ts';
export type { SecretStatus } from './store/secrets-meta.ts';
export { changesIn, secretsText } from './store/secrets-text.ts';
export type { Shelf, ShelvedToolset } from './store/shelf.ts';
export { readToolset, TOOLSET_NAME } from './store/toolsets.ts';
export { type WantedSecrets, wantedSecrets } from './store/wanted-secrets.ts';
export type { OtelApi } from './telemetry/api.ts';
export { openTelemetry } from './telemetry/open.ts';
export type { Telemetry } from './telemetry/start.ts';
export { createOtelTracer } from './telemetry/tracer.ts';
export { VERSION } from './version.ts';
export {
  defineTool,
  type JsonSchema,
  type LogLevel,
  type McpToolDefinition,
  type StandardSchema,
  type ToolContext,
  type ToolDefinition,
  type ToolLog,
  type ToolResult,
} from './workers/define-tool.ts';
export { type CreatedNamespace, createNamespace, deleteNamespace } from './workers/namespace-folders.ts';
export { type FolderPlace, type Scan, scanNamespaces, toolsFolder } from './workers/namespaces.ts';
export { type Prepared, prepareNamespace } from './workers/prepare.ts';
export type { Namespace } from './workers/scan-folder.ts';
export { LANGUAGES, type Language } from './workers/tool-files.ts';
