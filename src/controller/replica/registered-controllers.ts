// “Members only” (docs/replication.md): members are the controllers with a live register `controller/ID/auth`.
import type { LwwMap } from "#crdt/lww-map.ts";

const authKey = /^controller\/([^/]+)\/auth$/;

export function authKeyOf(id: string): string {
  return `controller/${id}/auth`;
}

/** The registered controllers: those with a live register `controller/ID/auth`. */
export function registeredIn(map: LwwMap): readonly string[] {
  const ids: string[] = [];
  for (const { key, text } of map.withPrefix("controller/")) {
    const id = text === null ? undefined : authKey.exec(key)?.[1];
    if (id !== undefined) ids.push(id);
  }
  return ids;
}

export function concernsMembers(keys: readonly string[]): boolean {
  return keys.some((key) => authKey.test(key));
}

/** The controller of an origin `ID#WORD`; empty for an origin of another form. */
export function controllerOf(origin: string): string {
  return origin.slice(0, Math.max(0, origin.lastIndexOf("#")));
}
