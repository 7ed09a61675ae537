import { expect } from "chai";
import type { ModuleDefinition } from "#engine/step/define.ts";
import { directoryManaged } from "#engine/modules/directory-managed.ts";
import { fileAbsent } from "#engine/modules/file-absent.ts";
import { fileManaged } from "#engine/modules/file-managed.ts";
import { keyGenerated } from "#engine/modules/key-generated.ts";
import { symlinkManaged } from "#engine/modules/symlink-managed.ts";
import { HostileHome, hostileUser } from "#support/hostile-owner.ts";
import { isLongForm, tellLongForm, tries } from "#support/hostile.ts";
import { shellsOf } from "#support/shells.ts";

const { name: user, group } = hostileUser;
const times = tries(4, 500);
const content = "what root writes";

interface AttackedModule {
  readonly title: string;
  readonly module: ModuleDefinition;
  /** The path within the folder; the folder itself if absent. */
  readonly path?: string;
  readonly args: Readonly<Record<string, unknown>>;
  readonly place?: "sticky";
  /** The owner's files, and those of them that the owner swaps all the time. */
  readonly fill?: readonly string[];
  readonly swaps: readonly string[];
}

const file = { module: fileManaged, path: "/conf", swaps: ["conf"] } as const;

const attackedModules: readonly AttackedModule[] = [
  { ...file, title: "creates a file", args: { content, mode: "0644", owner: user, group: "root" } },
  { ...file, title: "replaces a file and keeps its owner", args: { content }, fill: ["conf"] },
  { ...file, title: "replaces a file with a backup", args: { content, owner: user, backup: true }, fill: ["conf"] },
  {
    ...file,
    title: "creates parent folders of a file",
    path: "/a/b/conf",
    args: { content, owner: user, makeDirs: true },
    swaps: ["a", "a/b", "a/b/conf"],
  },
  {
    title: "creates a folder, or sets its owner and mode",
    module: directoryManaged,
    path: "/entry",
    args: { mode: "0777", owner: user, group },
    swaps: ["entry"],
  },
  {
    title: "sets owner and mode recursively",
    module: directoryManaged,
    args: { mode: "0777", fileMode: "0666", owner: user, group, recurse: ["owner", "group", "mode"] },
    fill: ["sub/conf", "sub/secret", "conf", "sub/deep/f"],
    swaps: ["sub", "sub/conf", "conf", "sub/entry"],
  },
  {
    title: "creates a key, or sets its owner and mode",
    module: keyGenerated,
    path: "/conf",
    args: { mode: "0640", owner: user, group },
    fill: ["conf"],
    swaps: ["conf"],
  },
  {
    title: "removes another user's folder",
    module: fileAbsent,
    args: { recurse: true },
    place: "sticky",
    fill: ["sub/conf", "sub/deep/f", "conf"],
    swaps: ["sub", "sub/deep"],
  },
  {
    title: "creates a link in a sticky folder",
    module: symlinkManaged,
    path: "/../conf",
    args: { target: "secret" },
    place: "sticky",
    swaps: ["../conf"],
  },
];

describe("root's work in a folder whose owner swaps files touches nothing else", function () {
  let home: HostileHome;
  afterEach(() => home.remove());

  for (const shell of shellsOf(import.meta.filename, ["dash", "bash", "busybox sh", "mksh"]))
    for (const { title, module, path = "", args, place = "home", fill = [], swaps } of attackedModules) {
      const attack = async (text: (all: unknown) => string, way: string): Promise<void> => {
        const at = (home.dir + path).replace("/dir/..", "");
        const work = text({ path: at, ...args });
        home.fill(fill);
        expect(await home.repeat(shell, 1, work), "when nobody attacks").to.equal(1);
        home.fill(fill);
        await home.unleash(...swaps);
        const done = await home.repeat(shell, times, work);
        home.restrain();
        expect(home.damage).to.deep.equal([]);
        if (isLongForm) expect(done, "got through").to.be.greaterThan(0);
        tellLongForm(`${title}, ${way} on ${shell}: ${times} tries, ${done} got through, nothing of root's touched`);
      };
      it(`S-6 ${title}, on ${shell}`, () => {
        home = new HostileHome(place);
        return attack((all) => home.applyText(module, all), "alone");
      });
      if (!("backup" in args || "recurse" in args || module === keyGenerated))
        it(`S-6 ${title}, in a batch on ${shell}`, () => {
          home = new HostileHome(place);
          return attack((all) => home.batchText(module, all), "in a batch");
        });
    }
});
