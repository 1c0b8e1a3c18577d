import { describe, expect, it } from 'vitest';
import { createEvents } from './events.ts';

describe('events', () => {
  it('are told to those who want all, and to those who want one kind, until they have heard enough', () => {
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
});
