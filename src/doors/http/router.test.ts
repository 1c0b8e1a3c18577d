import { describe, expect, it } from 'vitest';
import { createRouter, type OpenRoute, paramsOf, type RouteTable } from './router.ts';

const route = (path: string, methods: string[], more: Partial<OpenRoute> = {}): OpenRoute => ({
  path,
  methods,
  access: 'open',
  errors: 'rpc',
  handle() {},
  ...more,
});

const tableOf = (routes: OpenRoute[], more: Partial<RouteTable> = {}): RouteTable => ({
  routes,
  fallback: { access: 'agent', errors: 'rest', message: 'Nothing.' },
  readsQuery: true,
  pageHeaders: [],
  allowsPageHeader: () => false,
  ...more,
});

const finder = (...routes: OpenRoute[]) => {
  const { find } = createRouter(tableOf(routes));
  return (path: string, method = 'GET') => {
    const { path: found, methods } = find(path, method);
    return methods.length === 0 ? null : `${methods.join()} ${found}`;
  };
};

describe('a router', () => {
  it('finds the first route whose path matches, regardless of its methods', () => {
    const find = finder(route('/a', ['GET']), route('/a/*', ['GET']), route('/*/b', ['POST']), route('/*/*', ['PUT']));
    expect(find('/a')).toBe('GET /a');
    expect(find('/a/b', 'POST')).toBe('GET /a/*');
    expect(find('/x/b', 'PUT')).toBe('POST /*/b');
    expect(find('/x/y')).toBe('PUT /*/*');
    expect([find('/'), find('/x'), find('/a/'), find('/x/y/z'), find('/x/')]).toEqual([null, null, null, null, null]);
  });

  it('returns the same route on a repeated lookup', () => {
    const find = finder(route('/a/*', ['GET']));
    expect([find('/a/1'), find('/a/1'), find('/b/1'), find('/b/1')]).toEqual(['GET /a/*', 'GET /a/*', null, null]);
    const long = `/a/${'x'.repeat(500)}`;
    expect([find(long), find(long)]).toEqual(['GET /a/*', 'GET /a/*']);
  });

  it('does not treat a well-known path as a namespace', () => {
    expect(finder(route('/*/docs', ['GET']))('/.well-known/docs')).toBeNull();
  });

  it('distinguishes routes that share a path by method', () => {
    const shared = { sharesPath: true };
    const routes = [
      route('/users/me', ['POST'], shared),
      route('/users/:id', ['GET', 'HEAD'], shared),
      route('/users/:id', ['DELETE'], shared),
    ];
    const find = finder(...routes);
    expect(find('/users/me', 'POST')).toBe('POST /users/me');
    expect(find('/users/me', 'GET')).toBe('GET,HEAD /users/:id');
    expect(find('/users/7', 'DELETE')).toBe('DELETE /users/:id');
    expect(find('/users/7', 'PUT')).toBe('GET,HEAD /users/:id');
    expect(find('/users/')).toBe('GET,HEAD /users/:id');
    expect(find('/users/%zz')).toBeNull();
    const { methodsAt } = createRouter(tableOf(routes));
    expect(methodsAt('/users/me', false)).toEqual(['POST', 'GET', 'HEAD', 'DELETE']);
    expect(methodsAt('/users/7', false)).toEqual(['GET', 'HEAD', 'DELETE']);
  });

  it('lists the methods allowed at a path in each era', () => {
    const { methodsAt } = createRouter(
      tableOf([route('/mcp', ['POST', 'GET'], { modernMethods: ['POST'] }), route('/*', ['PUT'])]),
    );
    expect([methodsAt('/mcp', false), methodsAt('/mcp', true)]).toEqual([['POST', 'GET'], ['POST']]);
    expect([methodsAt('/x', true), methodsAt('/x/y', true)]).toEqual([['PUT'], []]);
  });

  it('follows an alias if no route matches', () => {
    const { find, fallback } = createRouter(
      tableOf([route('/a', ['GET'])], { aliasOf: (path) => (path === '/b' ? '/a' : null) }),
    );
    expect([find('/b', 'GET').path, find('/c', 'GET')]).toEqual(['/a', fallback]);
  });
});

it('paramsOf reads the named segments of a path', () => {
  expect(paramsOf('/a/:one/b/:two', '/a/x%2Fy/b/')).toEqual({ one: 'x/y', two: '' });
  expect(paramsOf('/a', '/a')).toEqual({});
});
