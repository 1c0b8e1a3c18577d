/**
 * Toolgate as a library. Everything exported here is public and follows semantic versioning. The section comments are
 * the headings of docs/api.md.
 */

// A gateway

export { VERSION } from './base/version.ts';
export { createGateway, type Gateway, openGateway } from './gateway/gateway.ts';
export type { GatewayOptions } from './gateway/root.ts';
export {
  type Following,
  type FollowingSecrets,
  type FollowingToolsets,
  followConfig,
  followSecrets,
  followToolsets,
} from './gateway/watch.ts';

// Configuration

export type { AgentConfig } from './config/agents.ts';
export type { Config } from './config/config.ts';
export type { LoadOptions } from './config/find.ts';
export type { JwtConfig } from './config/http.ts';
export type { Launch } from './config/launch.ts';
export { configFromValue, loadConfig } from './config/load.ts';
export type { MacroConfig, MacroStep } from './config/macros.ts';
export { configJsonSchema } from './config/schema.ts';
export type { VaultConfig } from './config/secrets-key.ts';
export type { ServerConfig } from './config/servers.ts';

// Ways in

export { createIdentity, type Identity, type IdentityOptions } from './calls/identity.ts';
export type { LocalCallOptions, LocalDoor, Progress } from './calls/local.ts';
export type { Identify } from './doors/http/auth/authenticator.ts';
export type { HttpDoor, HttpDoorOptions } from './doors/http/door.ts';
export { type ExpressMiddleware, expressMiddleware } from './doors/http/mount/express.ts';
export { type FastifyPlugin, fastifyPlugin } from './doors/http/mount/fastify.ts';
export { type FetchHandler, fetchHandler } from './doors/http/mount/fetch.ts';
export { type HonoMiddleware, honoMiddleware } from './doors/http/mount/hono.ts';
export { createHttpDoor, type ListeningDoor, type ListenOptions, openHttpDoor } from './doors/http/server.ts';
export { openLocalDoor } from './doors/local.ts';
export { connectInMemory, type MemoryOptions, type MemoryTransport } from './doors/memory.ts';
export { openRemoteDoor, type RemoteDoor } from './doors/remote/door.ts';
export type { RemoteOptions } from './doors/remote/link.ts';
export { openStdioDoor, type StdioDoor } from './doors/stdio.ts';

// Calls

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
export { type LogCallsOptions, logCalls } from './observe/log-calls.ts';

// Errors

export { type ErrorBody, type ErrorCode, GatewayError } from './base/errors.ts';
export { RelayedError } from './calls/relayed-error.ts';

// Events

export type { EventMap, EventName, Events, Listener } from './base/events.ts';

// Items of your own

export {
  type Completer,
  definePrompt,
  type PromptDefinition,
  type PromptMessage,
  type PromptOutput,
} from './tools/define-prompt.ts';
export { defineResource, type ResourceDefinition } from './tools/define-resource.ts';
export {
  defineTool,
  type Elicited,
  type JsonSchema,
  type LogLevel,
  type McpToolDefinition,
  type Sampled,
  type SampleRequest,
  type StandardSchema,
  type ToolContext,
  type ToolDefinition,
  type ToolLog,
  type ToolResult,
  type ToolState,
} from './tools/define-tool.ts';

// Toolsets in your own server

export { createMcpServer, createPermissionBasedMcpServer, mountToolsets } from './library/create.ts';
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
export type { McpServerHandle } from './library/handle.ts';
export type { Logger } from './library/logger.ts';
export type { MountableServer, MountOptions, SdkServer } from './library/mount.ts';
export type {
  CreateMcpServerOptions,
  CreatePermissionBasedMcpServerOptions,
  HttpOptions,
  ServerInfo,
} from './library/options.ts';
export type { FastifyLike, StartOptions } from './library/serve.ts';
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

// Servers and catalog

export type { BreakerState } from './calls/limits/breaker.ts';
export type { WatchedServer } from './calls/limits/limiters.ts';
export type { Catalog, Problem } from './catalog/catalog.ts';
export { CATEGORIES, type Category, categoryOf, type Effect } from './catalog/category.ts';
export type { Entry } from './catalog/entry.ts';
export type { Item, Kind } from './catalog/item.ts';
export type { FleetReport, ServerStatus } from './sources/fleet.ts';

// Toolsets

export type { ToolReference, Toolset } from './access/toolset.ts';
export type { FirstList } from './controls/first-list.ts';
export type {
  LibraryToolset,
  ToolsetLibrary,
} from './store/toolset-library.ts';

// Who may use what

export type { Subject, TokenClaims } from './access/circumstances.ts';
export { type EntryDecision, explainName } from './access/explain.ts';
export type { Decision, Finding } from './access/policy.ts';
export { type Agent, type AgentStore, openAgentStore } from './store/agents.ts';
export type { ApprovalRequest, Verdict } from './store/approval-files.ts';
export { decideApproval, readApprovalRequests } from './store/decide-approval.ts';
export { operatorKey } from './store/operator.ts';

// Tasks

export { loadTask, type Task, taskFromValue } from './config/task.ts';
export type { TaskProfile, TaskRule, TaskRules } from './config/tasks.ts';
export { type Plan, type PlannedServer, type PlannedTool, planTask } from './plans/plan.ts';
export { type PlanConfig, planConfig } from './plans/plan-config.ts';
export { planConfigMap, planJson, planToml } from './plans/plan-text.ts';

// Secrets

export type { SecretStatus } from './secrets/payload.ts';
export { createRedactor, type Redactor } from './secrets/redact.ts';
export type { Vault } from './sources/vault.ts';
export { openSecretStore, type SecretChange, type SecretStore } from './store/secrets.ts';

// Metrics and audit

export type { CallKind, Outcome } from './calls/outcome.ts';
export type { AuditMetrics } from './observe/audit.ts';
export { counter, type Family, gauge, type Labels, type Sample } from './observe/families.ts';
export type { Duration, TallyMetrics } from './observe/histogram.ts';
export type {
  AgentMetrics,
  CallMetrics,
  Counts,
  EntryMetrics,
} from './observe/metrics.ts';
export type { CallSpan, Incoming, SentSpan, SpanEnd, Tracer } from './observe/span.ts';
export type { TraceContext } from './protocol/trace.ts';
export {
  type AuditFilter,
  type AuditProblem,
  type AuditRecord,
  type AuditVerdict,
  type ReadOptions,
  readAudit,
  type VerifyOptions,
  verifyAudit,
} from './store/audit-read.ts';
export { type AuditUsage, createUsageCount, type UsageCount } from './store/audit-usage.ts';
export type { OtelApi } from './telemetry/api.ts';
export { openTelemetry } from './telemetry/open.ts';
export type { Telemetry } from './telemetry/start.ts';
export { createOtelTracer } from './telemetry/tracer.ts';

// Former names

export {
  type AgentFigures,
  type AuditFigures,
  createVisitor,
  type EntryFigures,
  type Figures,
  type Petition,
  readPetitions,
  type Shelf,
  type ShelvedToolset,
  type TallyFigures,
  type Visitor,
  type VisitorOptions,
} from './deprecated.ts';
