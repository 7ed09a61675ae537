import { expect } from "chai";
import { addressAt, findLabPlace, recordLabPlace, withPrefix } from "#lab/place.ts";
import { sourcesLine } from "#lab/repository.ts";
import { rejectionOf } from "#support/rejection.ts";
import { folderOfEachTest } from "#support/temp-dir.ts";

describe("a lab's place", () => {
  const at = folderOfEachTest("place");

  it("gives two labs different bridges, networks, folders and cgroups", async () => {
    const home = at();
    const usual = await findLabPlace({ home });
    const other = await findLabPlace({ home, name: "other" });
    for (const field of ["bridge", "net", "folder", "group"] as const) expect(usual[field]).to.not.equal(other[field]);
    expect(usual.home).to.equal(other.home);
  });

  it("keeps host interfaces within the kernel's 15 characters", async () => {
    const { bridge } = await findLabPlace({ home: "/x", name: "a-name-of-20-letters" });
    expect(`vb-${bridge}-254`.length).to.be.at.most(15);
  });

  it("remembers its bridge and network, so that later commands need only the name", async () => {
    const home = at();
    await recordLabPlace(await findLabPlace({ home, name: "t", bridge: "kcz", net: "192.168.77" }));
    const { bridge, net, gateway } = await findLabPlace({ home, name: "t" });
    expect({ bridge, net, gateway }).to.deep.equal({ bridge: "kcz", net: "192.168.77", gateway: "192.168.77.1" });
  });

  it("refuses to move a lab that is up to another network", async () => {
    const home = at();
    await recordLabPlace(await findLabPlace({ home, name: "t" }));
    expect((await rejectionOf(findLabPlace({ home, name: "t", net: "10.9.9" }))).message).to.include(
      "take it down first",
    );
  });

  it("O6: gives IPv6 alone where its network is the beginning of a /64", async () => {
    const home = at();
    await recordLabPlace(await findLabPlace({ home, name: "six", net: "fd77:0:0:1" }));
    const place = await findLabPlace({ home, name: "six" });
    expect([place.network, place.gateway]).to.deep.equal(["fd77:0:0:1::/64", "fd77:0:0:1::1"]);
    expect(withPrefix(place, addressAt(place, 11))).to.equal("fd77:0:0:1::11/64");
    expect(sourcesLine(place)).to.contain("http://[fd77:0:0:1::1]:8642/");
    const four = await findLabPlace({ home, net: "10.9.8" });
    expect(withPrefix(four, addressAt(four, 11))).to.equal("10.9.8.11/24");
  });

  for (const [what, options, told] of [
    ["a name with a slash", { name: "../x" }, "../x"],
    ["a public network", { net: "8.8.8" }, "8.8.8"],
    ["a number over 255", { net: "10.0.256" }, "10.0.256"],
    ["a public network of IPv6", { net: "2001:db8:0:1" }, "2001:db8:0:1"],
    ["a network of IPv6 that is written otherwise than its addresses are", { net: "fd77:0:0:0" }, "fd77:0:0:0"],
    ["a bridge name that is too long for its cables", { bridge: "waytoolong" }, "waytoolong"],
    ["a folder that an overlay mount could not name", { home: "/a:b" }, "/a:b"],
  ] as const) {
    it(`refuses ${what}`, async () =>
      expect((await rejectionOf(findLabPlace({ home: "/nowhere", ...options }))).message).to.include(told));
  }
});
