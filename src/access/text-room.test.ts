import { expect, it } from 'vitest';
import { traitsOf, UNKNOWN_CLIENT } from '../protocol/known-clients.ts';
import { SHORT_TEXT, textRoom } from './text-room.ts';

it('texts are short for clients that cut or that nobody knows, and whole for others', () => {
  const room = (name: string) => textRoom(traitsOf(name, 'legacy'), null).description;
  expect(room('claude-code')).toBe(SHORT_TEXT);
  expect(room('nobody knows')).toBe(SHORT_TEXT);
  expect(room('codex-mcp-client')).toBe(Number.POSITIVE_INFINITY);
  expect(textRoom({ ...UNKNOWN_CLIENT, description: 500 }, null).description).toBe(500);
});

it('the configuration decides for all clients', () => {
  const codex = traitsOf('codex-mcp-client', 'legacy');
  expect(textRoom(codex, 'short')).toEqual({ description: SHORT_TEXT, instructions: SHORT_TEXT });
  expect(textRoom(UNKNOWN_CLIENT, 'full').description).toBe(Number.POSITIVE_INFINITY);
});
