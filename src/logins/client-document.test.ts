import { describe, expect, it } from 'vitest';
import { clientDocument, describes, documentFor } from './client-document.ts';

const PAGE = 'https://tools.example.com/team/login/callback';
const DOCUMENT = 'https://tools.example.com/team/login/client.json';

describe('the document of a gateway', () => {
  it.each([
    [PAGE, DOCUMENT],
    ['https://tools.example.com/login/callback', 'https://tools.example.com/login/client.json'],
    ['http://tools.example.com/login/callback', null],
    ['http://127.0.0.1:33418/callback', null],
    ['https://tools.example.com/callback', null],
  ])('for a browser that returns to %s is at %s', (redirect, document) => {
    expect(documentFor(redirect)).toBe(document);
    expect((clientDocument(redirect) as { client_id: string } | null)?.client_id ?? null).toBe(document);
  });

  it.each([
    [DOCUMENT, PAGE, true],
    [DOCUMENT, 'http://127.0.0.1:33418/callback', false],
    [DOCUMENT, 'https://other.example.com/login/callback', false],
    ['https://example.com/client-metadata.json', 'http://127.0.0.1:33418/callback', true],
  ])('%s is used with %s: %s', (document, redirect, isUsed) => {
    expect(describes(document, redirect)).toBe(isUsed);
  });
});
