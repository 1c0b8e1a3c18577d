import { describe, expect, it } from 'vitest';
import { createEvents, type EventSink } from './events.ts';

describe('events', () => {
  it('reach those who listen to all and those who listen to one name, until they stop', () => {
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

  it('reach the other observers when one of them fails', () => {
    const events = createEvents();
    const heard: string[] = [];
    events.listen(() => {
      throw new Error('broken');
    });
    events.listen((name) => heard.push(name));
    events.emit('cut', { bytes: 1 });
    expect(heard).toEqual(['cut']);
  });

  it('have a side for the rooms of the gateway that cannot listen', () => {
    const sink: EventSink = createEvents();
    // @ts-expect-error
    void sink.listen;
    // @ts-expect-error
    void sink.on;
    sink.emit('cut', { bytes: 1 });
  });
});
