// An agent of the AI SDK. Its tools are those of the moment when they were asked for.

import { createMCPClient } from '@ai-sdk/mcp';
import { Experimental_StdioMCPTransport } from '@ai-sdk/mcp/mcp-stdio';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText, stepCountIs } from 'ai';

const { url, command, model, prompt } = JSON.parse(process.argv[2]);
const [program, ...args] = command ?? [];
const transport = url ? { type: 'http', url } : new Experimental_StdioMCPTransport({ command: program, args });
const client = await createMCPClient({ transport });
const tools = await client.tools();
const provider = createOpenAICompatible({ name: 'standin', baseURL: `${model}/v1`, apiKey: 'test' });
const { text } = await generateText({ model: provider('scripted'), tools, prompt, stopWhen: stepCountIs(20) });
const resources = await client.listResources().then((list) => list.resources.length, String);
console.log(`REPORT ${JSON.stringify({ output: text, resources })}`);
await client.close();
