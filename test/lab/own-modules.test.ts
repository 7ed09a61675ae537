import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { openBastion, type Bastion } from "#support/deploy.ts";

const page = readFileSync(join(import.meta.dirname, "../../docs/own-modules.md"), "utf8");
const example = /```yaml\n(# modules\/site\.motd\.yaml\n[\s\S]*?)```/.exec(page)?.[1] ?? "";

describe("kcore modules test", function () {
  this.timeout(200_000);
  let bastion: Bastion;

  before(async () => {
    bastion = await openBastion({
      "modules/site.motd.yaml": example,
      "modules/site.bad.yaml": example.replace("put_file", "true put_file"),
    });
  });
  after(() => bastion?.remove());

  it("prints what docs/own-modules.md shows", async () => {
    const shown = /\$ sudo kcore modules test site.motd\n([\s\S]*?)```/.exec(page)?.[1];
    expect(await bastion.does("modules", "test", "site.motd")).to.equal(shown);
  });

  it("fails for a module that does not converge", async () => {
    const { code, stdout, stderr } = await bastion.kcore(["modules", "test", "site.bad", "--no-busybox"]);
    expect([code, stdout.split("\n").length], stderr).to.deep.equal([1, 4]);
    expect(stderr).to.contain("site.bad does not converge on dash: ");
  });
});
