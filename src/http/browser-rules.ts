import type { IncomingHttpHeaders } from 'node:http';
import { type GatewayError, refuse } from '../domain/errors.ts';

/** What protects a gateway from pages in a browser on the same machine. Pure. */
export interface BrowserRules {
  /** With authentication a rebound name is of no use to a page: it has no token. */
  readonly authenticated: boolean;
  /** Host names, lower case, with or without a port. */
  readonly allowedHosts: readonly string[];
  /** Origins, `scheme://host[:port]`, lower case. */
  readonly allowedOrigins: readonly string[];
  readonly secure: boolean;
}

/** What changes nothing (RFC 9110, 9.2.1), of the methods that are known here. */
export const SAFE_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS']);
const HOST = /^(\[[0-9a-f:.]+\]|[^:[\]\s/@]+)(?::([0-9]{1,5}))?$/;
const LOOPBACK_V4 = /^127(?:\.[0-9]{1,3}){3}$/;

/** Against DNS rebinding: without authentication only loopback names and the allowed ones are served. @returns the refusal, or `null`. */
export function hostRefusal(rules: BrowserRules, host: string | undefined): GatewayError | null {
  if (rules.authenticated) return null;
  const match = HOST.exec((host ?? '').toLowerCase());
  const name = match?.[1];
  if (name === undefined) return refuse('wrong_host', 'The Host header is missing or malformed.');
  const loopback = name === 'localhost' || name.endsWith('.localhost') || name === '[::1]' || LOOPBACK_V4.test(name);
  if (loopback || rules.allowedHosts.includes(name) || rules.allowedHosts.includes(match?.[0] ?? '')) return null;
  return refuse('wrong_host', 'Without authentication this gateway answers to loopback names and FENCEGATE_ALLOWED_HOSTS only.');
}

/** Whether a page of this origin may write and read our answers. */
export function isAllowedOrigin(rules: BrowserRules, origin: string | undefined): boolean {
  return origin !== undefined && rules.allowedOrigins.includes(origin.toLowerCase());
}

/** Against pages of other origins that write with the user's reach. @returns the refusal, or `null`. */
export function originRefusal(rules: BrowserRules, method: string, headers: IncomingHttpHeaders): GatewayError | null {
  if (SAFE_METHODS.has(method)) return null;
  const { origin } = headers;
  if (isAllowedOrigin(rules, origin)) return null;
  if (origin !== undefined && !isOwnOrigin(rules, origin, headers.host)) return refuse('cross_origin', 'A page of this origin may not write here.');
  if (headers['sec-fetch-site'] === 'cross-site') return refuse('cross_origin', 'A page of another site may not write here.');
  return null;
}

function isOwnOrigin(rules: BrowserRules, origin: string, host: string | undefined): boolean {
  if (host === undefined) return false;
  try {
    return new URL(origin).origin === new URL(`${rules.secure ? 'https' : 'http'}://${host}`).origin;
  } catch {
    // "null" and other opaque origins are nobody's own.
    return false;
  }
}
