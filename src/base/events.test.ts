import { describe, expect, it } from 'vitest';
import { createEvents, type EventSink, redacted } from './events.ts';

describe('events', () => {
  it('reach listeners to all events and listeners to one name, until they unsubscribe', () => {
    const events = createEvents((text) => text.replaceAll('secret', '…'));
    const heard: string[] = [];
    const stop = events.on('note', ({ source, message }) => heard.push(`${source}: ${message}`));
    const stopAll = events.listen((name) => heard.push(name));
    events.emit('note', { source: 'a', message: 'a secret' });
    events.emit('config', { ok: true, message: '' });
    stop();
    events.emit('note', { source: 'a', message: 'more' });
    stopAll();
    events.emit('note', { source: 'a', message: 'most' });
    expect(heard).toEqual(['a: a …', 'note', 'config', 'note']);
  });

  it('reach the other listeners if one of them throws', () => {
    const events = createEvents();
    const heard: string[] = [];
    events.listen(() => {
      throw new Error('broken');
    });
    events.listen((name) => heard.push(name));
    events.emit('cut', { bytes: 1 });
    expect(heard).toEqual(['cut']);
  });

  it('have an emit-only sink for the parts of the gateway', () => {
    const sink: EventSink = createEvents();
    // @ts-expect-error
    void sink.listen;
    // @ts-expect-error
    void sink.on;
    sink.emit('cut', { bytes: 1 });
  });
});

it('what is nested more deeply than a stack reaches is redacted as far as it is shown', () => {
  const deep = JSON.parse(`${'[{"a":'.repeat(5_000)}"secret"${'}]'.repeat(5_000)}`);
  const shown = JSON.stringify(redacted({ near: 'secret', deep }, (text) => text.replaceAll('secret', '…')));
  expect(shown).toContain('"near":"…"');
  expect(shown).toContain('nested too deeply');
  expect(shown).not.toContain('secret');
});
