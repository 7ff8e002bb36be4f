//! Output of `print`, `str`, `format` and the REPL.

use crate::support::check;

#[test]
fn print_and_str() {
    check(&[
        ("(print 1 2.0 -0.5 1e-8 1e20)", "1 2.0 -0.5 1e-08 1e+20"),
        ("(print (/ 1 3) (sqrt 2) (* 1.0 16777217))", "0.33333334 1.4142135 1.6777216e+07"),
        ("(print (/ 1 0) (/ -1 0) (/ 0 0))", "inf -inf nan"),
        ("(print true false nil :k 'sym \"text\")", "true false nil :k sym text"),
        ("(print \"two\" \"words\")", "two words"),
        ("(print)", ""),
        ("(print \"a\\nb\")", "a\nb"),
        ("(print '[1 :a \"x\" [2 nil]])", "[1 :a x [2 nil]]"),
        ("(print '(1 2) '[])", "[1 2] []"),
        ("(print {:x 1 \"y\" [1 2] :z {}})", "{:x 1 \"y\" [1. 2.] :z {}}"),
        ("(print [1 2.5 -3])", "[ 1.   2.5 -3. ]"),
        ("(print [[1 2] [3 4]])", "[[1. 2.]\n [3. 4.]]"),
        ("(print [false false true])", "[false false true]"),
        ("(print (arange 3) (sum [1 2]) (sum (arange 3)))", "[0 1 2] 3.0 3"),
        ("(print (zeros 0) (zeros '[2 0]))", "[] []"),
        ("(print (> (sum [1]) 0))", "true"),
        ("(print (arange 2000))", "[   0    1    2 ... 1997 1998 1999]"),
        ("(print sum (fn [x] x))", "<fn:sum> <fn:<lambda>>"),
        (
            "(defn f [x] x) (print f (grad f) (value-and-grad f))",
            "<fn:f> <fn:(grad f)> <fn:(value-and-grad f)>",
        ),
        ("(print (str 1 \"a\" :b [1 2] nil))", "1a:b[1. 2.]nil"),
        ("(str)", "=> \"\""),
        ("(println 1)", "1"),
        ("(print 100:200)", "100:200"),
    ]);
}

#[test]
fn formats() {
    check(&[
        ("(print \"loss {:.4f}\" 0.123456)", "loss 0.1235"),
        ("(print \"epoch {:3} loss {:.3f}\" 7 (mean [1 2]))", "epoch   7 loss 1.500"),
        ("(print \"{} {} {}\" [1 2] :k '[1])", "[1. 2.] :k [1]"),
        ("(print \"{1} {0} {{}}\" 1 2)", "2 1 {}"),
        ("(print \"{:>6}|{:<6}|{:^6}\" \"a\" \"b\" \"c\")", "     a|b     |  c   "),
        ("(print \"{:,}\" 1234567)", "1,234,567"),
        ("(print \"{:7}|\" 1.5)", "    1.5|"),
        ("(print \"{}\" (sum (arange 4)))", "6"),
        ("(print \"{}\" (sum [1 2]))", "3.0"),
        ("(print \"no placeholder\" 1)", "no placeholder 1"),
        ("(print \"{}\")", "{}"),
        ("(format \"{:05d} {:+.1e}\" 42 1234.5)", "=> \"00042 +1.2e+03\""),
        ("(format \"{}\" true)", "=> \"true\""),
        ("(format \"plain\")", "=> \"plain\""),
        ("(format \"{:d}\" 1.5)", "error: the placeholder `{:d}`"),
        ("(format 5)", "error: format wants a text first, got the number 5"),
    ]);
}

#[test]
fn the_repl_shows() {
    check(&[
        ("[1 2 3]", "=> tensor f32[3] = [1. 2. 3.]"),
        ("'[:x :y]", "=> '[:x :y]"),
        ("\"text\"", "=> \"text\""),
        ("\"a\\\"b\\n\"", "=> \"a\\\"b\\n\""),
        ("(defn f [x] x) f", "=> <fn:f>"),
        ("{:a [1]}", "=> {:a [1.]}"),
        (":k", "=> :k"),
        ("1.0", "=> 1.0"),
        ("nil", ""),
    ]);
}
