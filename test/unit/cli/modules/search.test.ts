import { expect } from "chai";
import { z } from "zod";
import { knownModules } from "#cli/modules/known-modules.ts";
import { searchModules } from "#cli/modules/search.ts";
import type { ModuleDefinition } from "#engine/step/define.ts";

const namesFor = async (...words: string[]): Promise<readonly string[]> =>
  searchModules(await knownModules(undefined).all(), words).map(({ name }) => name);

describe("kcore modules --search", () => {
  it("finds modules by their names in Ansible, Salt and pyinfra, the best match first", async () => {
    for (const [word, name] of [
      ["pkg.installed", "package.installed"],
      ["apt.packages", "package.installed"],
      ["lvol", "lvm.logical_volume"],
      ["cmd.run", "command.run"],
      ["uri", "http.ready"],
      ["SERVICE", "service.running"],
      ["useradd", "user.managed"],
    ] as const)
      expect((await namesFor(word))[0], word).to.equal(name);
    expect((await namesFor("systemd")).slice(0, 4)).to.include.members(["service.running", "unit.managed"]);
  });

  it("finds modules with every word, also in summaries and nested arguments", async () => {
    expect(await namesFor("mount", "nofail")).to.deep.equal(["mount.mounted"]);
    expect([await namesFor("vlan"), await namesFor("mount", "zebra")]).to.deep.equal([["network.interface"], []]);
  });

  it("ranks names and other names above summaries, and those above arguments, and shows what matched", () => {
    const module = (name: string, more: Partial<ModuleDefinition>): ModuleDefinition => ({
      name,
      summary: "",
      args: z.strictObject({}),
      step: () => ({ want: {}, probe: undefined as never }),
      ...more,
    });
    const found = searchModules(
      [
        module("d.d", { args: z.strictObject({ a: z.strictObject({ cron: z.string() }) }) }),
        module("c.c", { summary: "Keeps a cron job." }),
        module("b.b", { alsoKnownAs: ["cron"] }),
        module("cron.managed", {}),
        module("e.e", { summary: "Something else." }),
      ],
      ["cron"],
    );
    expect(found.map(({ name, found: what }) => `${name}: ${what}`)).to.deep.equal([
      "b.b: known as cron",
      "cron.managed: name",
      "c.c: summary",
      "d.d: argument a.cron",
    ]);
  });

  it("has no duplicate or empty other name of a module", async () => {
    for (const { name, alsoKnownAs = [] } of await knownModules(undefined).all()) {
      expect(alsoKnownAs, name).to.deep.equal([...new Set(alsoKnownAs)]);
      expect(
        alsoKnownAs.filter((one) => one.trim() === "" || one === name),
        name,
      ).to.deep.equal([]);
    }
  });
});
