/** What `import … from 'toolgate'` resolves to in a tool file whose folder has not installed Toolgate itself. */
export * from '../../src/tools/define-prompt.ts';
export * from '../../src/tools/define-resource.ts';
export * from '../../src/tools/define-tool.ts';
