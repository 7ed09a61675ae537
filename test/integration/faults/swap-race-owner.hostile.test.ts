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

interface Work {
  readonly title: string;
  readonly module: ModuleDefinition;
  /** The path in the folder; the folder itself if there is none. */
  readonly path?: string;
  readonly args: Readonly<Record<string, unknown>>;
  readonly place?: "sticky";
  /** The owner's files, and those among them that are swapped all the time. */
  readonly fill?: readonly string[];
  readonly swaps: readonly string[];
}

const file = { module: fileManaged, path: "/conf", swaps: ["conf"] } as const;

const works: readonly Work[] = [
  { ...file, title: "H4: a file is put there", args: { content, mode: "0644", owner: user, group: "root" } },
  { ...file, title: "H4: a file there is replaced as it is", args: { content }, fill: ["conf"] },
  { ...file, title: "H4: a file there is kept", args: { content, owner: user, backup: true }, fill: ["conf"] },
  {
    ...file,
    title: "H5: folders above a file are made",
    path: "/a/b/conf",
    args: { content, owner: user, makeDirs: true },
    swaps: ["a", "a/b", "a/b/conf"],
  },
  {
    title: "H5: a folder is made, or gets owner and mode",
    module: directoryManaged,
    path: "/entry",
    args: { mode: "0777", owner: user, group },
    swaps: ["entry"],
  },
  {
    title: "H5: all that lies beneath gets owner and mode",
    module: directoryManaged,
    args: { mode: "0777", fileMode: "0666", owner: user, group, recurse: ["owner", "group", "mode"] },
    fill: ["sub/conf", "sub/secret", "conf", "sub/deep/f"],
    swaps: ["sub", "sub/conf", "conf", "sub/entry"],
  },
  {
    title: "H5: a key is made, or gets owner and mode",
    module: keyGenerated,
    path: "/conf",
    args: { mode: "0640", owner: user, group },
    fill: ["conf"],
    swaps: ["conf"],
  },
  {
    title: "H5: a folder of somebody's is removed",
    module: fileAbsent,
    args: { recurse: true },
    place: "sticky",
    fill: ["sub/conf", "sub/deep/f", "conf"],
    swaps: ["sub", "sub/deep"],
  },
  {
    title: "H5: a link is put into a sticky folder",
    module: symlinkManaged,
    path: "/../conf",
    args: { target: "secret" },
    place: "sticky",
    swaps: ["../conf"],
  },
];

describe("root in a folder whose owner attacks", function () {
  let home: HostileHome;
  afterEach(() => home.remove());

  for (const shell of shellsOf(import.meta.filename, ["dash", "bash", "busybox sh", "mksh"]))
    for (const { title, module, path = "", args, place = "home", fill = [], swaps } of works) {
      const attack = async (text: (all: unknown) => string, lane: string): Promise<void> => {
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
        tellLongForm(`${title}, ${lane} on ${shell}: ${times} tries, ${done} got through, nothing of root's touched`);
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
