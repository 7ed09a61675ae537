import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { containerImage } from "#engine/modules/container-image.ts";
import { runStepOn, stepOf, type StepRun } from "#support/steps.ts";
import { shellsOf } from "#support/shells.ts";
import { makeTempDir, type TempDir } from "#support/temp-dir.ts";

const name = "docker.io/library/nginx:1.27.3";
const digest = `sha256:${"a".repeat(64)}`;
const id = `sha256:${"b".repeat(64)}`;

describe("container.image", () => {
  it("wants the image, and its digest where that is given", () => {
    const want = (args: object) => stepOf(containerImage, args).want;
    expect(want({ name })).to.deep.equal({ image: "present" });
    expect(want({ name: `${name}@${digest}` })).to.deep.equal({ image: "present", digest });
    expect(want({ name, state: "absent" })).to.deep.equal({ image: "absent" });
  });

  it("refuses names that mean another image to another runtime", () => {
    for (const other of [
      "nginx",
      "nginx:1.27",
      "library/nginx:1.27",
      "docker.io/library/nginx",
      "docker.io/library/Nginx:1",
      "-a.example/b:1",
      "a.example/b:1 c",
      "a.example/b@sha256:12",
      "registry:5000/a",
    ])
      expect(containerImage.args.safeParse({ name: other }).success, other).to.equal(false);
    for (const other of [
      "localhost/a:1",
      "registry:5000/a/b-c:1_x",
      "ghcr.io/a/b__c/d:v1",
      `a.example:5000/b@${digest}`,
    ])
      expect(containerImage.args.safeParse({ name: other }).success, other).to.equal(true);
    expect(containerImage.args.safeParse({ name, archive: "/a", state: "absent" }).success).to.equal(false);
  });

  for (const shell of shellsOf(import.meta.filename))
    describe(`on ${shell}`, () => {
      let folder: TempDir;
      const at = (file: string): string => join(folder.path, file);
      beforeEach(async () => {
        folder = await makeTempDir("image");
      });
      afterEach(() => folder.remove());
      /** Podman and Docker, with the images that stand in FOLDER/images; `loaded` is what an archive brings. */
      const engine = (): string => `echo "$*" >>${at("calls")}
! [ -e ${at("down")} ] || { echo "Cannot connect to the daemon" >&2; exit 125; }
case "$*" in
  "image ls -q") ;;
  "image inspect --format {{range .RepoDigests}}{{println .}}{{end}}{{.Id}} "*)
    for image; do :; done
    grep -qxF -e "$image" ${at("images")} 2>/dev/null || { echo "no such image" >&2; exit 1; }
    printf '%s\\n\\n' "docker.io/library/nginx@${digest}"; echo ${id} ;;
  "pull -q "*) [ ! -e ${at("offline")} ] || { echo "dial tcp: no route to host" >&2; exit 1; }; echo "$3" >>${at("images")} ;;
  "load -q -i ${at("a.tar")}") echo ${name} >>${at("images")} ;;
  "rmi ${name}") [ ! -e ${at("used")} ] || { echo "image is in use by 12ab" >&2; exit 2; }; sed -i d ${at("images")} ;;
  *) exit 64 ;;
esac`;
      /** containerd's, which has images by name, type and digest. */
      const ctr = (): string => `echo "$*" >>${at("calls")}
[ "$1 $2 $3" != "-a /run/x.sock -n" ] || shift 2
case "$*" in
  "-n k8s.io images ls") echo "REF TYPE DIGEST SIZE PLATFORMS LABELS"; while read -r image; do echo "$image application/vnd.oci.image.index.v1+json ${digest} 66.9 MiB linux/amd64 -"; done <${at("images")} ;;
  "-n k8s.io images pull "*) echo "$5" >>${at("images")} ;;
  "-n k8s.io images import ${at("a.tar")}") echo other.example/b:1 >>${at("images")} ;;
  "-n k8s.io images rm "*) sed -i d ${at("images")} ;;
  *) exit 64 ;;
esac`;
      const run = (args: object = {}, options: object = {}): Promise<StepRun> =>
        runStepOn(shell, stepOf(containerImage, { name, ...args }), { bin: { podman: engine() }, ...options });

      it("pulls what is missing, once, and tells its digest", async () => {
        const dry = await run({}, { dryRun: true });
        expect([dry.outcome, dry.have], JSON.stringify(dry)).to.deep.equal([
          "would-change",
          { runtime: "podman", image: "absent" },
        ]);
        expect(existsSync(at("images"))).to.equal(false);
        const done = await run();
        expect([done.outcome, done.now], JSON.stringify(done)).to.deep.equal([
          "changed",
          { runtime: "podman", image: "present", digest },
        ]);
        expect((await run()).outcome).to.equal("ok");
        const pinned = await run({ name: `${name}@${digest}` });
        expect([pinned.outcome, pinned.now["digest"]], JSON.stringify(pinned)).to.deep.equal(["changed", digest]);
        expect(readFileSync(at("calls"), "utf8").match(/^pull/gm)).to.have.length(2);
      });

      it("loads it from a file, and asks no registry", async () => {
        expect((await run({ archive: at("a.tar") }, { dryRun: true })).problem?.code).to.equal("IMAGE_FAILED");
        writeFileSync(at("a.tar"), "");
        expect((await run({ archive: at("a.tar") })).outcome).to.equal("changed");
        expect(readFileSync(at("calls"), "utf8")).not.to.contain("pull");
      });

      it("says what the runtime said, and takes one that does not answer for no answer", async () => {
        writeFileSync(at("offline"), "");
        const { problem } = await run();
        expect([problem?.code, problem?.detail]).to.deep.equal(["IMAGE_FAILED", "dial tcp: no route to host"]);
        expect((await run({ pull: "never" }, { dryRun: true })).problem?.message).to.contain("pull: never");
        writeFileSync(at("down"), "");
        const down = await run({ state: "absent" });
        expect([down.problem?.code, down.problem?.message]).to.deep.equal(["IMAGE_FAILED", "podman does not answer"]);
      });

      it("removes it, but not from under a container", async () => {
        await run();
        writeFileSync(at("used"), "");
        expect((await run({ state: "absent" })).problem?.detail).to.equal("image is in use by 12ab");
        expect(
          (
            await run(
              { state: "absent", runtime: "docker" },
              { bin: { docker: engine().replace(at("used"), "/none") } },
            )
          ).outcome,
        ).to.equal("changed");
        expect((await run({ state: "absent" })).outcome).to.equal("ok");
      });

      it("asks containerd in Kubernetes' namespace", async () => {
        writeFileSync(at("images"), "docker.io/library/nginx:1.27.30\n");
        const args = { runtime: "ctr", socket: "/run/x.sock" };
        const options = { bin: { ctr: ctr() } };
        const done = await run({ ...args, name: `${name}@${digest}` }, options);
        expect([done.outcome, done.now], JSON.stringify(done)).to.deep.equal([
          "changed",
          { runtime: "ctr", image: "present", digest },
        ]);
        writeFileSync(at("a.tar"), "");
        const other = await run({ ...args, archive: at("a.tar") }, options);
        expect([other.problem?.code, other.problem?.message.includes("brought no")]).to.deep.equal([
          "IMAGE_FAILED",
          true,
        ]);
        const k3s = { bin: { k3s: `[ "$1" = ctr ] && shift && set -- "$@" && ${ctr().replaceAll("\n", "\n")}` } };
        expect((await run({ runtime: "k3s", state: "absent", name: "other.example/b:1" }, k3s)).outcome).to.equal(
          "changed",
        );
      });
    });

  it("says which runtimes it knows where there is none", async () => {
    const { problem } = await runStepOn("/bin/dash", stepOf(containerImage, { name }), {
      env: { PATH: "/nonexistent" },
      dryRun: true,
    });
    expect(problem?.code).to.equal("TOOL_MISSING");
  });
});
