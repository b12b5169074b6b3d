import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { expect, it } from 'vitest';

/** What a program may call has a comment with an example (which `client-examples.test.ts` runs), and what it may read has a comment. */

const CLASSES: Readonly<Record<string, string>> = {
  'fencegate-client.ts': 'FencegateClient',
  'file-calls.ts': 'FileCalls',
  'lease-handle.ts': 'LeaseHandle',
  'download.ts': 'FileDownload',
  'administration.ts': 'Administration',
  'unattended-leases.ts': 'UnattendedLeases',
};
const FUNCTIONS: Readonly<Record<string, string>> = { 'from-environment.ts': 'clientFromEnvironment', 'errors.ts': 'isFencegateError' };
/** For the client's own use, and said to be so. */
const INNER: ReadonlySet<string> = new Set(['LeaseHandle.right']);

function sourceOf(name: string): ts.SourceFile {
  const path = fileURLToPath(new URL(`../../../src/client/${name}`, import.meta.url));
  return ts.createSourceFile(name, readFileSync(path, 'utf8'), ts.ScriptTarget.Latest, true);
}

/** What is missing. */
function lacks(node: ts.Node, what: string, needsExample: boolean): string[] {
  const comments = ts.getJSDocCommentsAndTags(node).filter(ts.isJSDoc);
  if (comments.length === 0) return [`${what} has no comment`];
  if (!needsExample) return [];
  const example = comments.some(({ tags = [] }) => tags.some(({ tagName }) => tagName.text === 'example'));
  const errors = comments.some((comment) => /\b(Rejects|rejects|Throws|throws|fails)\b/.test(comment.getText()));
  return [...(example ? [] : [`${what} has no example`]), ...(errors ? [] : [`${what} does not say how it fails`])];
}

function isPublic(member: ts.ClassElement): boolean {
  if (member.name === undefined || !ts.isIdentifier(member.name)) return false;
  return !ts.canHaveModifiers(member) || !(ts.getModifiers(member) ?? []).some(({ kind }) => kind === ts.SyntaxKind.PrivateKeyword);
}

it('every public method of the client has a comment with an example, every member that is read has a comment', () => {
  const missing = Object.entries(CLASSES).flatMap(([file, name]) => {
    const declared = sourceOf(file).statements.find((one) => ts.isClassDeclaration(one) && one.name?.text === name) as ts.ClassDeclaration;
    const own = declared.members.filter(isPublic).map((member) => ({ member, what: `${name}.${(member.name as ts.Identifier).text}` }));
    return own.filter(({ what }) => !INNER.has(what)).flatMap(({ member, what }) => lacks(member, what, ts.isMethodDeclaration(member)));
  });
  expect(missing).toEqual([]);
});

it.each(Object.entries(FUNCTIONS))('%s: %s has a comment with an example', (file, name) => {
  const declared = sourceOf(file).statements.find((one) => ts.isFunctionDeclaration(one) && one.name?.text === name);
  expect(declared === undefined ? ['is not there'] : lacks(declared, name, true)).toEqual([]);
});
