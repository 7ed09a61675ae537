import { expect } from "chai";
import { readMounts } from "#lab/container.ts";

describe("a simulated power failure of a lab node", () => {
  const mounts = [
    "overlay / overlay rw 0 0",
    "devtmpfs /dev/loop5 devtmpfs rw 0 0",
    "/dev/loop5p1 /data ext4 rw 0 0",
    "/dev/loop6 /var/lib/with\\040blank xfs rw 0 0",
    "/dev/loop6 /bound xfs rw 0 0",
    "/dev/loop5p2 /efi vfat rw 0 0",
    "/dev/loop66 /other ext4 rw 0 0",
    "",
  ].join("\n");

  it("affects the file systems of the node's partitions and disks, each once", () =>
    expect(readMounts(mounts, ["loop5", "loop6"])).to.deep.equal(["/data", "/var/lib/with blank"]));

  it("affects no file systems of other disks", () => expect(readMounts(mounts, [])).to.deep.equal([]));
});
