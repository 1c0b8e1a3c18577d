/** The keys of `_meta` that the protocol reserves for itself. */
export const PROTOCOL_VERSION = 'io.modelcontextprotocol/protocolVersion';
export const CLIENT_INFO = 'io.modelcontextprotocol/clientInfo';
export const CLIENT_CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities';
export const LOG_LEVEL = 'io.modelcontextprotocol/logLevel';
export const SERVER_INFO = 'io.modelcontextprotocol/serverInfo';
export const RELATED_TASK = 'io.modelcontextprotocol/related-task';
export const SUBSCRIPTION_ID = 'io.modelcontextprotocol/subscriptionId';

/** The key of `_meta` in a question that names the server that asks. */
export const ASKED_BY = 'toolgate/server';

/** The extension that lets modern servers answer with MCP tasks. */
export const TASKS = 'io.modelcontextprotocol/tasks';

/** The extension for skills: folders of instructions, served as resources. */
export const SKILLS = 'io.modelcontextprotocol/skills';

/** The key of `_meta` in the template of a skill that has the skill's entry. */
export const SKILL_ENTRY = 'toolgate/skill';

/** The request of that extension that goes to a server. Lists and entries of skills are known without one. */
export const READ_DIRECTORY = 'resources/directory/read';
