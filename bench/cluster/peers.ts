import { createRequire } from "node:module";

// The peers come from a package of their own (peers/), which the product never sees. Only their used parts are typed.
const requirePeer = createRequire(new URL("peers/package.json", import.meta.url));

interface YMap {
  readonly set: (key: string, value: string) => void;
  readonly get: (key: string) => unknown;
}
interface YDoc {
  clientID: number;
  readonly getMap: (name: string) => YMap;
  readonly transact: (change: () => void) => void;
}
interface Yjs {
  readonly Doc: new () => YDoc;
  readonly encodeStateAsUpdate: (doc: YDoc) => Uint8Array;
  readonly applyUpdate: (doc: YDoc, update: Uint8Array) => void;
}

type AutomergeDoc = Readonly<Record<string, string>>;
interface Automerge {
  readonly init: () => AutomergeDoc;
  readonly change: (doc: AutomergeDoc, change: (draft: Record<string, string>) => void) => AutomergeDoc;
  readonly save: (doc: AutomergeDoc) => Uint8Array;
  readonly load: (bytes: Uint8Array) => AutomergeDoc;
  readonly merge: (into: AutomergeDoc, from: AutomergeDoc) => AutomergeDoc;
}

export const yjs = (): Yjs => requirePeer("yjs") as Yjs;
export const automerge = (): Automerge => requirePeer("@automerge/automerge") as Automerge;
