import { expect } from "chai";
import { escapePath } from "#engine/step/fragments/mount-unit.ts";

describe("mount.mounted", () => {
  it("names units as systemd-escape does", () => {
    expect(escapePath("/var/lib/kcore/volumes1")).to.equal("var-lib-kcore-volumes1");
    expect(escapePath("/srv/a-b")).to.equal(String.raw`srv-a\x2db`);
    expect(escapePath("/.x")).to.equal(String.raw`\x2ex`);
    expect(escapePath("/")).to.equal("-");
  });
});
