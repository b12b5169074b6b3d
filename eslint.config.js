import tseslint from 'typescript-eslint';

/** Only what needs types and what biome does not see for certain: a lost `await` is a lost write here. */
export default tseslint.config({
  files: ['src/**/*.ts', 'test/**/*.ts', 'bench/**/*.ts'],
  languageOptions: { parser: tseslint.parser, parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
  plugins: { '@typescript-eslint': tseslint.plugin },
  linterOptions: { reportUnusedDisableDirectives: 'error' },
  rules: {
    '@typescript-eslint/no-floating-promises': 'error',
    '@typescript-eslint/no-misused-promises': ['error', { checksVoidReturn: { arguments: false } }],
  },
});
