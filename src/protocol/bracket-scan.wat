;; Finds where the outermost bracket of JSON closes, 64 bytes at a time.
;; `npm run wasm` turns this into bracket-scan-code.ts; bracket-scan.ts uses it.
(module
  (memory (export "memory") 2)
  ;; The state that is kept from one part to the next.
  (global $depth (mut i32) (i32.const 0))
  (global $string (mut i64) (i64.const 0)) ;; all ones inside a string
  (global $escaped (mut i64) (i64.const 0)) ;; one where the next byte is escaped
  (global $quotes (mut i32) (i32.const 0)) ;; how many began or ended a string

  (func (export "reset")
    (global.set $depth (i32.const 0))
    (global.set $string (i64.const 0))
    (global.set $escaped (i64.const 0))
    (global.set $quotes (i32.const 0)))

  ;; The state as one number, so that several texts can be followed in turn.
  (func (export "state") (result i32)
    (i32.or
      (i32.shl (global.get $depth) (i32.const 2))
      (i32.or
        (i32.shl (i32.wrap_i64 (i64.and (global.get $string) (i64.const 1))) (i32.const 1))
        (i32.wrap_i64 (i64.and (global.get $escaped) (i64.const 1))))))

  (func (export "restore") (param $state i32)
    (global.set $depth (i32.shr_s (local.get $state) (i32.const 2)))
    (global.set $string (i64.sub (i64.const 0) (i64.extend_i32_u (i32.and (i32.shr_u (local.get $state) (i32.const 1)) (i32.const 1)))))
    (global.set $escaped (i64.extend_i32_u (i32.and (local.get $state) (i32.const 1)))))

  (func (export "quotes") (result i32) (global.get $quotes))

  ;; Whether one of the bytes from 0 to $end, a multiple of 64, is a control character: below 0x20.
  (func (export "controls") (param $end i32) (result i32)
    (local $at i32)
    (block $over
      (loop $block
        (br_if $over (i32.ge_u (local.get $at) (local.get $end)))
        (if (v128.any_true
              (i8x16.lt_u
                (i8x16.min_u
                  (i8x16.min_u (v128.load (local.get $at)) (v128.load offset=16 (local.get $at)))
                  (i8x16.min_u (v128.load offset=32 (local.get $at)) (v128.load offset=48 (local.get $at))))
                (i8x16.splat (i32.const 0x20))))
          (then (return (i32.const 1))))
        (local.set $at (i32.add (local.get $at) (i32.const 64)))
        (br $block)))
    (i32.const 0))

  ;; Which of the 64 bytes at $at are $byte, after $bits were set in all of them.
  (func $find (param $at i32) (param $bits v128) (param $byte v128) (result i64)
    (i64.or
      (i64.or
        (i64.extend_i32_u (i8x16.bitmask (i8x16.eq (v128.or (v128.load (local.get $at)) (local.get $bits)) (local.get $byte))))
        (i64.shl (i64.extend_i32_u (i8x16.bitmask (i8x16.eq (v128.or (v128.load offset=16 (local.get $at)) (local.get $bits)) (local.get $byte)))) (i64.const 16)))
      (i64.or
        (i64.shl (i64.extend_i32_u (i8x16.bitmask (i8x16.eq (v128.or (v128.load offset=32 (local.get $at)) (local.get $bits)) (local.get $byte)))) (i64.const 32))
        (i64.shl (i64.extend_i32_u (i8x16.bitmask (i8x16.eq (v128.or (v128.load offset=48 (local.get $at)) (local.get $bits)) (local.get $byte)))) (i64.const 48)))))

  ;; Reads the bytes from 0 to $end, a multiple of 64. Returns how many were read when the outermost bracket closed, and -1
  ;; while it is open.
  (func (export "scan") (param $end i32) (result i32)
    (local $at i32) (local $slash i64) (local $quote i64) (local $follows i64) (local $starts i64) (local $run i64)
    (local $inside i64) (local $open i64) (local $close i64) (local $bit i64)
    (local $a v128) (local $b v128) (local $c v128) (local $d v128)
    (block $over
      (loop $block
        (br_if $over (i32.ge_u (local.get $at) (local.get $end)))
        ;; Written out instead of calling $find, because most of the time is spent here.
        (local.set $a (v128.load (local.get $at)))
        (local.set $b (v128.load offset=16 (local.get $at)))
        (local.set $c (v128.load offset=32 (local.get $at)))
        (local.set $d (v128.load offset=48 (local.get $at)))
        (local.set $slash (i64.or
          (i64.or
            (i64.extend_i32_u (i8x16.bitmask (i8x16.eq (local.get $a) (v128.const i64x2 0x5c5c5c5c5c5c5c5c 0x5c5c5c5c5c5c5c5c))))
            (i64.shl (i64.extend_i32_u (i8x16.bitmask (i8x16.eq (local.get $b) (v128.const i64x2 0x5c5c5c5c5c5c5c5c 0x5c5c5c5c5c5c5c5c)))) (i64.const 16)))
          (i64.or
            (i64.shl (i64.extend_i32_u (i8x16.bitmask (i8x16.eq (local.get $c) (v128.const i64x2 0x5c5c5c5c5c5c5c5c 0x5c5c5c5c5c5c5c5c)))) (i64.const 32))
            (i64.shl (i64.extend_i32_u (i8x16.bitmask (i8x16.eq (local.get $d) (v128.const i64x2 0x5c5c5c5c5c5c5c5c 0x5c5c5c5c5c5c5c5c)))) (i64.const 48)))))
        (local.set $quote (i64.or
          (i64.or
            (i64.extend_i32_u (i8x16.bitmask (i8x16.eq (local.get $a) (v128.const i64x2 0x2222222222222222 0x2222222222222222))))
            (i64.shl (i64.extend_i32_u (i8x16.bitmask (i8x16.eq (local.get $b) (v128.const i64x2 0x2222222222222222 0x2222222222222222)))) (i64.const 16)))
          (i64.or
            (i64.shl (i64.extend_i32_u (i8x16.bitmask (i8x16.eq (local.get $c) (v128.const i64x2 0x2222222222222222 0x2222222222222222)))) (i64.const 32))
            (i64.shl (i64.extend_i32_u (i8x16.bitmask (i8x16.eq (local.get $d) (v128.const i64x2 0x2222222222222222 0x2222222222222222)))) (i64.const 48)))))
        ;; In a run of backslashes every second one is itself escaped. What follows one of the others is escaped.
        (if (i64.ne (i64.or (local.get $slash) (global.get $escaped)) (i64.const 0))
          (then
            (local.set $slash (i64.and (local.get $slash) (i64.xor (global.get $escaped) (i64.const -1))))
            (local.set $follows (i64.or (i64.shl (local.get $slash) (i64.const 1)) (global.get $escaped)))
            (local.set $starts (i64.and (i64.and (local.get $slash) (i64.const 0xaaaaaaaaaaaaaaaa)) (i64.xor (local.get $follows) (i64.const -1))))
            (local.set $run (i64.add (local.get $starts) (local.get $slash)))
            (global.set $escaped (i64.extend_i32_u (i64.lt_u (local.get $run) (local.get $slash))))
            (local.set $quote (i64.and (local.get $quote)
              (i64.xor
                (i64.and (i64.xor (i64.const 0x5555555555555555) (i64.shl (local.get $run) (i64.const 1))) (local.get $follows))
                (i64.const -1))))))
        (local.set $inside (global.get $string))
        (if (i64.ne (local.get $quote) (i64.const 0))
          (then
            (global.set $quotes (i32.add (global.get $quotes) (i32.wrap_i64 (i64.popcnt (local.get $quote)))))
            ;; Each quote toggles everything after it between inside and outside of a string.
            (local.set $inside (local.get $quote))
            (local.set $inside (i64.xor (local.get $inside) (i64.shl (local.get $inside) (i64.const 1))))
            (local.set $inside (i64.xor (local.get $inside) (i64.shl (local.get $inside) (i64.const 2))))
            (local.set $inside (i64.xor (local.get $inside) (i64.shl (local.get $inside) (i64.const 4))))
            (local.set $inside (i64.xor (local.get $inside) (i64.shl (local.get $inside) (i64.const 8))))
            (local.set $inside (i64.xor (local.get $inside) (i64.shl (local.get $inside) (i64.const 16))))
            (local.set $inside (i64.xor (local.get $inside) (i64.shl (local.get $inside) (i64.const 32))))
            (local.set $inside (i64.xor (local.get $inside) (global.get $string)))
            (global.set $string (i64.shr_s (local.get $inside) (i64.const 63)))))
        (if (i64.ne (local.get $inside) (i64.const -1))
          (then
            ;; [ and { differ in one bit, and so do ] and }.
            (local.set $open (i64.and (i64.xor (local.get $inside) (i64.const -1))
              (call $find (local.get $at) (i8x16.splat (i32.const 0x20)) (i8x16.splat (i32.const 0x7b)))))
            (local.set $close (i64.and (i64.xor (local.get $inside) (i64.const -1))
              (call $find (local.get $at) (i8x16.splat (i32.const 0x20)) (i8x16.splat (i32.const 0x7d)))))
            (if (i32.gt_s (global.get $depth) (i32.wrap_i64 (i64.popcnt (local.get $close))))
              (then
                (global.set $depth (i32.add (global.get $depth) (i32.wrap_i64 (i64.sub (i64.popcnt (local.get $open)) (i64.popcnt (local.get $close)))))))
              (else
                ;; The outermost bracket may close in this block, so brackets are counted one by one.
                (block $none_left
                  (loop $bracket
                    (local.set $bit (i64.or (local.get $open) (local.get $close)))
                    (br_if $none_left (i64.eqz (local.get $bit)))
                    (local.set $bit (i64.and (local.get $bit) (i64.sub (i64.const 0) (local.get $bit))))
                    (if (i64.ne (i64.and (local.get $open) (local.get $bit)) (i64.const 0))
                      (then
                        (global.set $depth (i32.add (global.get $depth) (i32.const 1)))
                        (local.set $open (i64.xor (local.get $open) (local.get $bit))))
                      (else
                        (global.set $depth (i32.sub (global.get $depth) (i32.const 1)))
                        (local.set $close (i64.xor (local.get $close) (local.get $bit)))
                        (if (i32.le_s (global.get $depth) (i32.const 0))
                          (then (return (i32.add (i32.add (local.get $at) (i32.wrap_i64 (i64.ctz (local.get $bit)))) (i32.const 1)))))))
                    (br $bracket)))))))
        (local.set $at (i32.add (local.get $at) (i32.const 64)))
        (br $block)))
    (i32.const -1)))
