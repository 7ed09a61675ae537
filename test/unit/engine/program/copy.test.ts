import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { expect } from "chai";
import { quote } from "#base/quote.ts";
import { copyText } from "#engine/program/without-runner.ts";
import { shellsOf } from "#support/shells.ts";
import { folderOfEachTest } from "#support/temp-dir.ts";

const user = 3000;
const textOf = (isHere: boolean, name: string, words: readonly string[]) =>
  // Debian's BusyBox has a tar without -T, which its sh would prefer.
  `tar() { /usr/bin/tar "$@"; }\nc_here=${isHere ? "1" : ""}\n${copyText()}\n${[name, ...words].map(quote).join(" ")}`;

for (const shell of shellsOf(import.meta.filename, ["dash", "bash", "busybox sh", "mksh"]))
  describe(`copy.sh, in ${shell}`, () => {
    const at = folderOfEachTest("copy");
    beforeEach(() => {
      chmodSync(at(), 0o755);
      mkdirSync(at("there"));
    });

    interface Way {
      readonly source?: string;
      readonly recurses?: boolean;
      /** Sum and bytes of the source, where they are known. */
      readonly known?: readonly string[];
      readonly destination?: string;
      readonly owner?: readonly [owner: string, group: string];
      /** Whether the receiver is the bastion. */
      readonly isFetch?: boolean;
      readonly asUser?: boolean;
    }
    /** Copies, and gives the reports of both sides. */
    const copy = ({ source = at("f"), recurses = false, known = [], isFetch = false, ...way }: Way): string => {
      const send = textOf(!isFetch, "c_send", [source, recurses ? "1" : "", ...known]);
      const [owner, group] = way.owner ?? ["-", "-"];
      const take = textOf(isFetch, "c_take", [way.destination ?? at("there/x"), "x", "-", owner, group]);
      const as = way.asUser === true ? `setpriv --reuid ${user} --clear-groups ` : "";
      const both = `mkfifo to from; ${as}${shell} -c "$1" <to >from & ${shell} -c "$2" >to <from; wait; rm to from`;
      const { stderr, error } = spawnSync("sh", ["-c", both, "sh", send, take], {
        cwd: at(),
        encoding: "utf8",
        timeout: 20_000,
      });
      if (error) throw error;
      return stderr;
    };

    describe("the folder of an unfinished copy on the bastion", () => {
      const part = () => at("there/.x.kcore-part");
      beforeEach(() => {
        chmodSync(at("there"), 0o1777);
        writeFileSync(at("f"), "secret\n");
        writeFileSync(at("victim"), "old\n");
      });
      const refused = () => {
        const said = copy({ isFetch: true });
        expect(said).to.match(/^R FILE_PARENT_UNSAFE .*\/there\/\.x\.kcore-part.*remove it/m);
        expect([existsSync(at("there/x")), readFileSync(at("victim"), "utf8")]).to.deep.equal([false, "old\n"]);
      };

      it("is refused if another user owns it", () => {
        mkdirSync(part());
        chmodSync(part(), 0o777);
        chownSync(part(), user, user);
        symlinkSync(at("victim"), `${part()}/f`);
        refused();
      });

      it("is refused if others can enter it", () => {
        mkdirSync(part());
        chmodSync(part(), 0o755);
        refused();
      });

      it("is refused if it is a link, or holds one in place of the file", () => {
        mkdirSync(at("own"), { mode: 0o700 });
        symlinkSync(at("own"), part());
        refused();
        rmSync(at("own"), { recursive: true });
        refused();
        rmSync(part());
        mkdirSync(part(), { mode: 0o700 });
        symlinkSync(at("victim"), `${part()}/f`);
        refused();
      });

      it("is refused for a folder, too", () => {
        mkdirSync(at("d"));
        mkdirSync(at("there/x/.kcore-part"), { recursive: true });
        chownSync(at("there/x/.kcore-part"), user, user);
        const said = copy({ source: at("d"), recurses: true, isFetch: true });
        expect(said).to.match(/^R FILE_PARENT_UNSAFE .*\/there\/x\/\.kcore-part/m);
      });

      it("serves if it is the operator's alone, also under a name of any bytes", () => {
        mkdirSync(part(), { mode: 0o700 });
        expect(copy({ isFetch: true })).to.include(`done ${at("there/x")}`);
        expect(readFileSync(at("there/x"), "utf8")).to.equal("secret\n");
        expect(copy({ isFetch: true, destination: at("there/ä'\"") })).to.include("done ");
        expect(readFileSync(at("there/ä'\""), "utf8")).to.equal("secret\n");
      });

      it("gives a fetched file to --owner", () => {
        copy({ isFetch: true, owner: [`${user}`, `${user + 1}`] });
        const { uid, gid } = statSync(at("there/x"));
        expect([uid, gid]).to.deep.equal([user, user + 1]);
      });
    });

    describe("a folder on a node", () => {
      const send = (owner?: Way["owner"]) => copy({ source: at("d"), recurses: true, ...(owner && { owner }) });
      const owners = (name: string) => [lstatSync(at("there/x", name)).uid, lstatSync(at("there/x", name)).gid];
      beforeEach(() => {
        mkdirSync(at("d/sub"), { recursive: true });
        for (const name of ["d/a", "d/sub/b"]) writeFileSync(at(name), "v1\n");
        send();
      });

      it("keeps owner and group of the files that it replaces", () => {
        chownSync(at("there/x/a"), user, user + 1);
        chownSync(at("there/x/sub/b"), user, 0);
        for (const name of ["d/a", "d/sub/b", "d/new"]) writeFileSync(at(name), "v2\n");
        expect(send()).to.include("done ");
        expect(readFileSync(at("there/x/sub/b"), "utf8")).to.equal("v2\n");
        expect([owners("a"), owners("sub/b"), owners("new")]).to.deep.equal([
          [user, user + 1],
          [user, 0],
          [0, 0],
        ]);
      });

      it("changes no file beneath a link that the source has in place of a folder", () => {
        mkdirSync(at("elsewhere"));
        writeFileSync(at("elsewhere/b"), "");
        chownSync(at("there/x/sub/b"), user, 0);
        rmSync(at("d/sub"), { recursive: true });
        symlinkSync(at("elsewhere"), at("d/sub"));
        send();
        expect(statSync(at("elsewhere/b")).uid).to.equal(0);
      });

      it("gives --owner to the files that are equal already, once", () => {
        chownSync(at("there/x/a"), 0, user + 1);
        expect(send([`${user}`, "-"])).to.match(/^sending 6 6 - 2 2$/m);
        expect([owners("a"), owners("sub/b")]).to.deep.equal([
          [user, user + 1],
          [user, 0],
        ]);
        expect(send([`${user}`, "-"])).to.match(/^sending 6 0 - 2 0$/m);
      });
    });

    describe("a source that it cannot read whole", () => {
      const send = (way: Way = {}) => copy({ source: at("d"), recurses: true, ...way });
      beforeEach(() => {
        mkdirSync(at("d/sub"), { recursive: true });
        writeFileSync(at("d/a"), "v1\n");
        writeFileSync(at("d/sub/b"), "v1\n", { mode: 0o600 });
      });

      it("is FILE_UNREADABLE with the file's or the folder's path", () => {
        expect(send({ asUser: true })).to.match(/^R FILE_UNREADABLE .*\/d\/sub\/b/m);
        expect(copy({ source: at("d/sub/b"), asUser: true })).to.match(/^R FILE_UNREADABLE .*\/d\/sub\/b/m);
        chmodSync(at("d/sub"), 0o700);
        expect(send({ asUser: true })).to.match(/^R FILE_UNREADABLE .*\/sub/m);
        expect(existsSync(at("there/x/a"))).to.equal(false);
      });

      it("is never a list of sums that ends too early", () => {
        writeFileSync(at("d/a\rb"), "cr\n");
        const said = send();
        // Only some implementations of sha256sum escape a carriage return.
        if (!said.includes("done ")) expect(said).to.match(/^R FILE_UNREADABLE .*\/d\/a\rb/m);
      });

      it("leaves out names with a back slash", () => {
        writeFileSync(at("d/a\\b"), "v1\n");
        expect(send()).to.include("done ");
        expect([existsSync(at("there/x/a")), existsSync(at("there/x/a\\b"))]).to.deep.equal([true, false]);
      });
    });

    describe("a file that changes", () => {
      const known = [createHash("sha256").update("one\n").digest("hex"), "4"];

      it("is sent as far as it was summed, if it has grown", () => {
        writeFileSync(at("f"), "one\ntwo\n");
        expect(copy({ known })).to.include("done ");
        expect([readFileSync(at("there/x"), "utf8"), statSync(at("there/x")).size]).to.deep.equal(["one\n", 4]);
      });

      it("is COPY_DIFFERS if it has shrunk", () => {
        writeFileSync(at("f"), "o");
        expect(copy({ known })).to.match(/^R COPY_DIFFERS .*\/f was changed/m);
      });
    });
  });
