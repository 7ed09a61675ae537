import { sh, type Sh } from "../sh.ts";
import type { TreePlan } from "./tree-plan.ts";

export interface TreeOptions {
  readonly path: string;
  readonly plan: TreePlan;
  readonly owner: string;
  readonly group: string;
  readonly mode: string;
  readonly exclude: readonly string[];
  /** Entries that the plan does not have are deleted. */
  readonly deletes: boolean;
  /** Changes are told by their names. */
  readonly tells: boolean;
}

/**
 * Prints a line for each entry beneath the current folder, on its file system: `o` if owner and group are as wanted, else `-`;
 * raw mode, size, name. Of excluded entries only the topmost is printed, with `x`. A name with a line break is left alone.
 */
function entriesHere({ owner, group, exclude }: TreeOptions): Sh {
  const globs = exclude.map((glob) => (glob.includes("/") ? sh` -o -path ${`./${glob}`}` : sh` -o -name ${glob}`));
  const excluded = globs.reduce((all, one) => sh`${all}${one}`, sh`-name '.kcore-*'`);
  return sh`find . -xdev -mindepth 1 -name "*$K_NL*" -prune -o \( ${excluded} \) -prune -exec stat -c 'x %f %s %n' {} + -o -user ${owner} -group ${group} -exec stat -c 'o %f %s %n' {} + -o -exec stat -c '- %f %s %n' {} +`;
}

/** Functions of awk over such lines. The size of a folder means nothing. */
const awkLines = sh`function name_in(line) { return substr(line, index(line, " ./") + 1) }
  function above(name) { sub("/[^/]*$", "", name); return name }
  function plain() { return $1 " " $2 " " ($2 ~ /^4/ ? "-" : $3) " " name_in($0) }
  $1 == "x" { for (up = above(name_in($0)); up != "."; up = above(up)) keep[up]; next }`;

/**
 * Reports the facts `names` and, if they are as wanted, `contents`: hashes over the wanted entries, with `deletes` over all. A
 * folder that only holds excluded entries counts as absent. Nothing is written, so that a look can do it.
 */
export function probeTree(options: TreeOptions): Sh {
  const { path, plan, deletes } = options;
  return sh`cd ${path} || exit 1
list=$({
  printf '%s\n' ${deletes ? plan.folders : plan.names}
  ${entriesHere(options)}
} | awk '/^\.\// { wanted[$0]; next }
  ${awkLines}
  NF { line[++n] = plain(); name[n] = name_in($0) }
  END { for (i = 1; i <= n; i++) if (name[i] in wanted${deletes ? sh` || !(name[i] in keep)` : sh``}) print line[i] }' | sort)
sum=$(printf '%s\n' "$list" | sha256sum) || exit 1
sum=sha256:\${sum%% *}
fact names "$sum"
[ "$sum" = ${`sha256:${plan.namesSum}`} ] || exit 0
sum=$({
  printf '%s\n' "$list" | sed -n 's/^. 8... [0-9]* //p' | tr '\n' '\000' | xargs -0 -r sha256sum | sed 's/^\\//; s/ .*//'
  ${plan.hasLinks ? sh`printf '%s\n' "$list" | sed -n 's/^. a1ff [0-9]* //p' | tr '\n' '\000' | xargs -0 ls -ld | sed 's,^[^/]* \./,./,' | sort` : sh``}
} | sha256sum) || exit 1
fact contents "sha256:\${sum%% *}"`;
}

/**
 * Writes the changes to the file `todo`, tells them, and refuses those beneath a mount point, and entries of another kind. A line
 * has a verb, the number in the plan or 0, and the name: `n` replaces an entry, `m` mends a folder's mode and owner,
 * `d` removes a file, `r` a folder. Only files of the wanted size, mode and owner are hashed.
 */
export function findChanges(options: TreeOptions, todo: Sh): Sh {
  const { path, plan, deletes } = options;
  return sh`real=
cd "$K_TMP" && : >tree && : >mounts && : >links || exit 1
if [ -d ${path} ]; then
  real=$(cd -P ${path} && pwd -P) && (cd "$real" && ${entriesHere(options)}) >tree
  mounts_under ${path} >mounts
fi
awk 'FILENAME == ARGV[1] { if ($2 == "o" && $1 != "-") wanted[substr($0, 66)]; next }
  $2 ~ /^8/ && $0 in wanted { print substr($0, index($0, " ./") + 1) }' ${plan.list} tree >same || exit 1
tr '\n' '\000' <same | (cd "\${real:-/}" && xargs -0 -r sha256sum) >sums || exit 1
${plan.hasLinks ? sh`sed -n 's/^o a1ff [0-9]* //p' tree | tr '\n' '\000' | (cd "\${real:-/}" && xargs -0 -r ls -ld) >links || exit 1` : sh``}
real=$real awk '${awkLines}
  function tell(what, at, name, up) {
    for (up = name; up != "."; up = above(up)) if (up in mount) what = "M"
    print what, at, name
  }
  FILENAME == ARGV[1] {
    if ($1 == "L") key[$2] = name_in($0)
    if ($2 == "o") { sum[++n] = $1; line[n] = substr($0, length($1) + 2); at[name[n] = name_in($0)] = n }
    next
  }
  FILENAME == ARGV[2] { same[++s] = $0; next }
  FILENAME == ARGV[3] { sub(/^\\/, ""); hash[same[++h]] = substr($0, 1, 64); next }
  FILENAME == ARGV[4] { there[name_in($0)]; next }
  FILENAME == ARGV[5] { mount["." substr($0, length(ENVIRON["real"]) + 1)]; next }
  { found[other[++t] = name_in($0)] = plain(); kind[other[t]] = substr($2, 1, 1) }
  END {
    if (s != h) exit 1
    for (i = 1; i <= n; i++) {
      type = substr(line[i], 3, 1)
      is = kind[name[i]]
      if (found[name[i]] == line[i] && (type == "4" || type == "8" && hash[name[i]] == sum[i] || type == "a" && key[i] in there)) continue
      if (is == "4" && type == "4") { tell("m", i, name[i]); continue }
      if (is != "" && (type == "4" || is !~ /[8a]/)) tell(${deletes ? sh`name[i] in keep ? "c" : is == "4" ? "r" : "d"` : sh`"c"`}, 0, name[i])
      tell("n", i, name[i])
    }
    ${deletes ? sh`for (i = 1; i <= t; i++) if (!(other[i] in at) && !(other[i] in keep)) tell(kind[other[i]] == "4" ? "r" : "d", 0, other[i])` : sh``}
  }' ${plan.list} same sums links mounts tree >${todo} || exit 1
bad=$(sed -n 's/^M [0-9]* //p' ${todo} | sed 10q)
[ -z "$bad" ] || refuse FILE_MOUNTED ${`${path} has mount points, beneath which nothing is changed: exclude them`}"$K_NL$bad"
bad=$(sed -n 's/^c [0-9]* //p' ${todo} | sed 10q)
[ -z "$bad" ] || refuse FILE_IN_THE_WAY ${`${path} has entries of another kind than the source`}"$K_NL$bad"
${options.tells ? tellChanges(todo) : sh``}`;
}

function tellChanges(todo: Sh): Sh {
  return sh`awk '{ what = $1 ~ /[nm]/ ? "writes" : "deletes" }
  ++count[what] <= 20 { list[what] = list[what] (count[what] > 1 ? ", " : "") substr($0, index($0, " ./") + 3) }
  END { for (what in count) print what " " count[what] ": " list[what] (count[what] > 20 ? ", ..." : "") }' ${todo} |
  sort -r | while IFS= read -r line; do note "$line"; done`;
}

/**
 * Prints the archives that the changes need, as `offers` names them, with their first and last entry: small ones, or a large one in
 * place of more than eight.
 */
export function askArchives({ plan }: TreeOptions, todo: Sh): Sh {
  return sh`awk 'function ask() { for (i = 1; i <= few && few <= 8; i++) print some[i]; if (few > 8) print large; few = 0 }
  FILENAME == ARGV[1] { if ($1 == "n") need[$2]; next }
  $1 == "G" { ask(); large = $4 " " $5 " " $2 " " $3 }
  $1 == "g" { for (i = $2; i <= $3; i++) if (i in need) { some[++few] = $4 " " $5 " " $2 " " $3; break } }
  END { ask() }' ${todo} ${plan.list}`;
}

/**
 * Makes the changes of the file `todo` whose archives are in the portion: unpacks them where only root can enter, and moves the
 * entries of each folder together into a folder aside there, and from it into place. A reader sees old or new files, and a
 * user who swaps a folder meanwhile gains nothing (S-6).
 */
export function makeChanges({ path, owner, group, mode }: TreeOptions, todo: Sh): Sh {
  return sh`go_to() {
  way=$1/
  while [ -n "$way" ]; do
    [ "\${way%%/*}" = . ] || k_below "./\${way%%/*}"
    k_cur=$k_cur/\${way%%/*} way=\${way#*/}
  done
}
mend_folder() { (go_to "$1" && chown ${`${owner}:${group}`} . && chmod ${mode} .); }
drop() { (go_to "$1" && shift && rm -f -- "$@"); }
fold() { (go_to "$1" && shift && rmdir -- "$@"); }
place() {
  (
    go_to "$1" && shift
    for old in ./.kcore-"$k_key"-*; do [ ! -d "$old" ] || [ -L "$old" ] || (k_private "$old" && rm -rf ./* ./.[!.]* ./..?*); done
    k_aside
    mv -f -- "$@" . && for all in './*' './.[!.]*' './..?*'; do
      set -- $all
      [ ! -e "$1" ] && [ ! -L "$1" ] || mv -f -- "$@" .. || { k_leave && exit 1; }
    done
    k_leave_flushed $?
  )
}
(
  k_enter ${`${path}/.`} ${owner}
  ! k_is_shared . || [ -n "$k_at" ] || k_here
  stage=$K_TMP/stage
  rm -rf "$stage" && mkdir -m 700 "$stage" || exit 1
  [ ! -s "$k_portion_file" ] || {
    sed 's/ .*//' "$k_portion_file" | (cd "$K_RUN/blobs" && xargs cat && head -c 1024 /dev/zero) | (cd "$stage" && tar -x -p -o -m -f -) && chown -R -h ${`${owner}:${group}`} "$stage" && sync
  } || exit 1
  awk 'function quoted(text) { gsub(/\047/, "\047\\\047\047", text); return "\047" text "\047" }
    function above(name) { sub("/[^/]*$", "", name); return name }
    function call(verb, name, before) {
      if (verb " " above(name) != last || (long += length(name)) > 60000) {
        printf "%s%s %s", (last == "" ? "" : " || exit 1\n"), verb, quoted(above(name))
        last = verb " " above(name)
        long = 0
      }
      printf " %s%s", before, quoted(substr(name, before == "" ? length(above(name)) + 2 : 3))
    }
    FILENAME == ARGV[1] { for (i = $3; i <= $4; i++) here[i]; next }
    { name[++n] = substr($0, index($0, " ./") + 1); what[n] = $1; at[n] = $2 }
    END {
      for (i = 1; i <= n; i++) if (what[i] == "m") print "mend_folder " quoted(name[i]) " || exit 1"
      for (i = 1; i <= n; i++) if (what[i] == "d") call("drop", name[i], "")
      for (i = n; i > 0; i--) if (what[i] == "r") call("fold", name[i], "")
      for (i = 1; i <= n; i++) if (what[i] == "n" && (above(name[i]) in moved || at[i] in here)) {
        if (!(above(name[i]) in moved)) call("place", name[i], "\"$stage\"/")
        moved[name[i]]
      }
      print (last == "" ? "" : " || exit 1")
    }' "$k_portion_file" ${todo} >"$K_TMP/changes" && . "$K_TMP/changes" && sed -i '/^[dr] /d' ${todo} && rm -rf "$stage" && sync
)`;
}
