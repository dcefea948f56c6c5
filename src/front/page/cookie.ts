import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import type { PageSettings } from "./settings.ts";

type Address = Pick<PageSettings, "url">;

/** A browser stays signed in as long as `run` says; this only keeps the cookie until then. */
const keptSeconds = 30 * 24 * 3_600;

/** @returns the session of a browser; null: none */
export function readSession(header: string | undefined, settings: Address): string | null {
  const name = cookieName(settings);
  const pairs = (header ?? "").split(";").map((pair) => pair.trim());
  const session = pairs.find((pair) => pair.startsWith(`${name}=`))?.slice(name.length + 1);
  return session && /^[\w-]{1,100}$/.test(session) ? session : null;
}

/** @param session null: the browser forgets it */
export function sessionCookie(session: string | null, settings: Address): string {
  const attributes = ["Path=/", "HttpOnly", "SameSite=Lax", ...(isPlain(settings) ? [] : ["Secure"])];
  const age = `Max-Age=${session === null ? 0 : keptSeconds}`;
  return [`${cookieName(settings)}=${session ?? ""}`, ...attributes, age].join("; ");
}

/** With `__Host-`, no other host name can plant one. It needs TLS, which localhost has not. */
function cookieName(settings: Address): string {
  return isPlain(settings) ? "hotpush" : "__Host-hotpush";
}

function isPlain({ url }: Address): boolean {
  return url.protocol === "http:";
}

const nonceBytes = 16;

/** What a form carries, so that it can only have come from a page that this session was shown. Each is different. */
export function formToken(session: string): string {
  const nonce = randomBytes(nonceBytes).toString("base64url");
  return `${nonce}.${proofOf(nonce, session)}`;
}

export function isFormToken(token: string, session: string): boolean {
  const [nonce = "", proof = ""] = token.split(".");
  const [given, expected] = [Buffer.from(proof), Buffer.from(proofOf(nonce, session))];
  return given.length === expected.length && timingSafeEqual(given, expected);
}

function proofOf(nonce: string, session: string): string {
  return createHmac("sha256", session).update(`form ${nonce}`).digest("base64url");
}
