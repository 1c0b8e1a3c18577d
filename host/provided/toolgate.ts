/** What `import … from 'toolgate'` means in a tool file where the namespace has not installed it: the whole gateway would be too much. */
export * from '../../src/tools/define-tool.ts';
