import { expect } from "chai";
import { registry } from "#engine/modules/registry.ts";
import { collectExamples } from "../../../../scripts/module-examples.ts";

describe("kcore modules NAME --examples", () => {
  it("has at least one step of each module, with valid arguments", async () => {
    const all = collectExamples();
    expect(Object.keys(all)).to.have.members([...registry.keys()]);
    for (const [name, { tried }] of Object.entries(all)) {
      const module = await registry.get(name)?.();
      const wrong = tried.filter(({ args }) => module?.args.safeParse(args).success !== true);
      expect(wrong, name).to.deep.equal([]);
    }
    expect(all["file.managed"]?.tried).to.deep.include({
      args: { path: "/srv/no/such/file", content: "x" },
      refused: "FILE_NO_PARENT",
    });
  });
});
