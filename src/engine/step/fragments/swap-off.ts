import { sh, type Sh } from "../sh.ts";
import { underSystemd } from "./mount-unit.ts";

/** Services that make swap without a swap unit: zram-tools, Ubuntu's zram-config, dphys-swapfile. */
const services = ["zramswap.service", "zram-config.service", "dphys-swapfile.service"];

/**
 * Sets four lists, separated by blanks. `areas`: the swap in use (proc_swaps(5)). `lines`: the sources of fstab's lines
 * that enable swap at boot. `units`: the swap units of swap.target that come from generators for GPT and zram or from unit
 * files, not from fstab. `makers`: the enabled services that make swap.
 */
export const readAllSwap: Sh = sh`areas= lines= units= makers=
while read -r path kind rest; do
  case $path in /*) areas="$areas$path " ;; esac
done </proc/swaps
if [ -f /etc/fstab ]; then
  while read -r source place kind options rest; do
    case $source:$kind in '#'*) ;; *:swap) case ,$options, in *,noauto,*) ;; *) lines="$lines$source " ;; esac ;; esac
  done </etc/fstab
fi
if ${underSystemd}; then
  wanted=$(systemctl show -p Wants,Requires swap.target) || exit 1
  set -- $(printf '%s\n' "$wanted" | sed 's/^[^=]*=//')
  found=$(systemctl show -p Id,LoadState,SourcePath,UnitFileState -- "$@" ${services}) || exit 1
  id= load= from= enabled=
  while IFS= read -r line; do
    case $line in
      Id=*) id=\${line#*=} ;;
      LoadState=*) load=\${line#*=} ;;
      SourcePath=*) from=\${line#*=} ;;
      UnitFileState=*) enabled=\${line#*=} ;;
      '')
        case $load:$from:$id:$enabled in
          loaded:/etc/fstab:*) ;;
          loaded:*.swap:*) units="$units$id " ;;
          loaded:*.service:enabled*) makers="$makers$id " ;;
        esac
        id= load= from= enabled=
        ;;
    esac
  done <<END_OF_UNITS
$found

END_OF_UNITS
fi`;

/** Comments out the lines of fstab that enable swap at boot, so that their text stays readable. */
export const commentSwapLines: Sh = sh`if [ -n "$lines" ]; then
  while IFS= read -r whole || [ -n "$whole" ]; do
    kind=$(set -f && set -- $whole && case $1 in '#'*) ;; *) printf '%s\n' "$3,$4," ;; esac)
    case $kind in *,noauto,*) ;; swap,*) whole="# no swap (kcore): $whole" ;; esac
    printf '%s\n' "$whole"
  done </etc/fstab >"$K_TMP/fstab" && put_file "$K_TMP/fstab" /etc/fstab - - - || exit 1
fi`;

/** Refuses if more swap is used than memory is free: swapoff would make the kernel kill programs. */
export const fitsIntoMemory: Sh = sh`used=0 free=0
while read -r path kind size this rest; do
  case $path in /*) used=$((used + this)) ;; esac
done </proc/swaps
while read -r key kib rest; do
  [ "$key" != MemAvailable: ] || free=$kib
done </proc/meminfo
[ "$used" -lt "$free" ] || [ "$used" = 0 ] ||
  refuse SWAP_NEEDED "$((used / 1024)) MiB lie in swap, and $((free / 1024)) MiB of memory are free"`;
