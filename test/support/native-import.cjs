// `import()` of Node. In TypeScript files of tests, vitest replaces it by its own, which transforms what it loads.
module.exports = (url) => import(url);
