import { join } from "node:path";
import type { Ports } from "#updater/ports.ts";

type FilePorts = Pick<Ports, "read" | "replace" | "remove" | "move" | "readLink" | "link" | "list">;

/** The files and links of a node, in memory. A power cut undoes unflushed removals and links. */
export class NodeFiles {
  readonly files = new Map<string, string>();
  readonly links = new Map<string, string>();
  readonly #unflushed = { links: new Map<string, string | undefined>(), removed: new Map<string, string>() };

  setLink(path: string, target: string): void {
    if (!this.#unflushed.links.has(path)) this.#unflushed.links.set(path, this.links.get(path));
    this.links.set(path, target);
  }

  flush(): void {
    this.#unflushed.links.clear();
    this.#unflushed.removed.clear();
  }

  powerCut(): void {
    for (const [path, target] of this.#unflushed.links)
      if (target === undefined) this.links.delete(path);
      else this.links.set(path, target);
    for (const [path, text] of this.#unflushed.removed) this.files.set(path, text);
    this.flush();
  }

  /** The updater's ports to these files. `step` is called with the operation's name and path before each one, and may end the process. */
  ports(step: (what: string) => Promise<void>): FilePorts {
    const { files, links } = this;
    const { removed } = this.#unflushed;
    return {
      read: async (path) => {
        await step(`read ${path}`);
        return files.get(path);
      },
      replace: async (path, text) => {
        await step(`replace ${path}`);
        files.set(path, text);
        removed.clear();
      },
      remove: async (path) => {
        await step(`remove ${path}`);
        const text = files.get(path);
        if (text !== undefined) removed.set(path, text);
        files.delete(path);
        links.delete(path);
      },
      move: async (from, to) => {
        await step(`move ${from}`);
        const text = files.get(from);
        if (text === undefined) return false;
        files.delete(from);
        files.set(to, text);
        removed.clear();
        return true;
      },
      readLink: async (path) => {
        await step(`readLink ${path}`);
        return links.get(path);
      },
      link: async (target, path) => {
        await step(`link ${path}`);
        this.setLink(path, target);
      },
      list: async (parent) => {
        await step(`list ${parent}`);
        return [...links.keys()]
          .filter((path) => join(path, "..") === parent)
          .map((path) => path.slice(parent.length + 1));
      },
    };
  }
}
