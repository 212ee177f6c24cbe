"""Special functions: error functions, gamma functions and Bessel functions.

The arguments are tensors of dtype f32 or f64, which are variables or constants.  `emit` binds an expression to a
variable.  The formulas are those by which CHLO defines the functions, so that results agree with other implementations
of CHLO to a few units in the last place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

import relvm.ops as ops
from relvm.ir.dtypes import F64
from relvm.ir.expr import Constant, Expr, constant

Emit = Callable[[Expr], Expr]

# Source: Lanczos, A Precision Approximation of the Gamma Function, 1964, with g = 7 and n = 9.
_LANCZOS_GAMMA = 7.0
_LANCZOS_BASE = 0.99999999999980993227684700473478
_LANCZOS = (
    676.520368121885098567009190444019,
    -1259.13921672240287047156078755283,
    771.3234287776530788486528258894,
    -176.61502916214059906584551354,
    12.507343278686904814458936853,
    -0.13857109526572011689554707,
    9.984369578019570859563e-6,
    1.50563273514931155834e-7,
)

# Polynomials of the inverse error function, highest powers first, for ranges of w = -log(1 - x * x).
# Source: Giles, Approximating the erfinv function, 2012.
_ERF_INV_F32 = (
    (
        *(2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503),
        *(-0.00417768164, 0.246640727, 1.50140941),
    ),
    (
        *(-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613),
        *(0.00943887047, 1.00167406, 2.83297682),
    ),
)
_ERF_INV_F64 = (
    (
        *(-3.6444120640178196996e-21, -1.685059138182016589e-19, 1.2858480715256400167e-18, 1.115787767802518096e-17),
        *(-1.333171662854620906e-16, 2.0972767875968561637e-17, 6.6376381343583238325e-15, -4.0545662729752068639e-14),
        *(-8.1519341976054721522e-14, 2.6335093153082322977e-12, -1.2975133253453532498e-11),
        *(-5.4154120542946279317e-11, 1.051212273321532285e-09, -4.1126339803469836976e-09),
        *(-2.9070369957882005086e-08, 4.2347877827932403518e-07, -1.3654692000834678645e-06),
        *(-1.3882523362786468719e-05, 0.0001867342080340571352, -0.00074070253416626697512),
        *(-0.0060336708714301490533, 0.24015818242558961693, 1.6536545626831027356),
    ),
    (
        *(2.2137376921775787049e-09, 9.0756561938885390979e-08, -2.7517406297064545428e-07, 1.8239629214389227755e-08),
        *(1.5027403968909827627e-06, -4.013867526981545969e-06, 2.9234449089955446044e-06, 1.2475304481671778723e-05),
        *(-4.7318229009055733981e-05, 6.8284851459573175448e-05, 2.4031110387097893999e-05),
        *(-0.0003550375203628474796, 0.00095328937973738049703, -0.0016882755560235047313),
        *(0.0024914420961078508066, -0.0037512085075692412107, 0.005370914553590063617),
        *(1.0052589676941592334, 3.0838856104922207635),
    ),
    (
        *(-2.7109920616438573243e-11, -2.5556418169965252055e-10, 1.5076572693500548083e-09),
        *(-3.7894654401267369937e-09, 7.6157012080783393804e-09, -1.4960026627149240478e-08),
        *(2.9147953450901080826e-08, -6.7711997758452339498e-08, 2.2900482228026654717e-07),
        *(-9.9298272942317002539e-07, 4.5260625972231537039e-06, -1.9681778105531670567e-05),
        *(7.5995277030017761139e-05, -0.00021503011930044477347, -0.00013871931833623122026),
        *(1.0103004648645343977, 4.8499064014085844221),
    ),
)

# Chebyshev coefficients of exp(-x) * I1(x) / x for x in [0, 8], and of exp(-x) * I1(x) * sqrt(x) above, for f64 and
# for f32.
# Source: Cephes, i1.c.
_I1E_SMALL = (
    *(2.77791411276104639959e-18, -2.11142121435816608115e-17, 1.55363195773620046921e-16, -1.10559694773538630805e-15),
    *(7.60068429473540693410e-15, -5.04218550472791168711e-14, 3.22379336594557470981e-13, -1.98397439776494371520e-12),
    *(1.17361862988909016308e-11, -6.66348972350202774223e-11, 3.62559028155211703701e-10, -1.88724975172282928790e-9),
    *(9.38153738649577178388e-9, -4.44505912879632808065e-8, 2.00329475355213526229e-7, -8.56872026469545474066e-7),
    *(3.47025130813767847674e-6, -1.32731636560394358279e-5, 4.78156510755005422638e-5, -1.61760815825896745588e-4),
    *(5.12285956168575772895e-4, -1.51357245063125314899e-3, 4.15642294431288815669e-3, -1.05640848946261981558e-2),
    *(2.47264490306265168283e-2, -5.29459812080949914269e-2, 1.02643658689847095384e-1, -1.76416518357834055153e-1),
    2.52587186443633654823e-1,
)
_I1E_LARGE = (
    *(7.51729631084210481353e-18, 4.41434832307170791151e-18, -4.65030536848935832153e-17, -3.20952592199342395980e-17),
    *(2.96262899764595013876e-16, 3.30820231092092828324e-16, -1.88035477551078244854e-15, -3.81440307243700780478e-15),
    *(1.04202769841288027642e-14, 4.27244001671195135429e-14, -2.10154184277266431302e-14, -4.08355111109219731823e-13),
    *(-7.19855177624590851209e-13, 2.03562854414708950722e-12, 1.41258074366137813316e-11, 3.25260358301548823856e-11),
    *(-1.89749581235054123450e-11, -5.58974346219658380687e-10, -3.83538038596423702205e-9, -2.63146884688951950684e-8),
    *(-2.51223623787020892529e-7, -3.88256480887769039346e-6, -1.10588938762623716291e-4, -9.76109749136146840777e-3),
    7.78576235018280120474e-1,
)
# The same of exp(-x) * I0(x) and exp(-x) * I0(x) * sqrt(x).
_I0E_SMALL = (
    *(-4.4153416464793393795e-18, 3.3307945188222380978e-17, -2.4312798465479546936e-16, 1.7153912855551330306e-15),
    *(-1.1685332877993451681e-14, 7.6761854986049356169e-14, -4.8564467831119294609e-13, 2.9550526631296398346e-12),
    *(-1.7268262914415557072e-11, 9.6758090353732369122e-11, -5.1897956016352629067e-10, 2.6598237246823866503e-9),
    *(-1.3000250099862480421e-8, 6.0469950225419189493e-8, -2.6707938539406117339e-7, 1.1173875391201037182e-6),
    *(-4.4167383584587505636e-6, 0.000016448448070728897089, -0.00005754195010082103704, 0.00018850288509584165573),
    *(-0.00057637557453858236588, 0.0016394756169413357984, -0.0043243099950505759443, 0.010546460394594998318),
    *(-0.023737414805899468816, 0.049305284239670708488, -0.094901097048047644421, 0.17162090152220877535),
    *(-0.30468267234319839868, 0.676795274409476085),
)
_I0E_LARGE = (
    *(-7.2331804878747539546e-18, -4.8305044859441820713e-18, 4.465621420296759999e-17, 3.4612228676974610931e-17),
    *(-2.8276239805165834849e-16, -3.4254856196772191346e-16, 1.7725601330565263836e-15, 3.8116806693526224207e-15),
    *(-9.5548466988283076487e-15, -4.1505693472872220866e-14, 1.5400862175214098269e-14, 3.8527783827421427011e-13),
    *(7.1801244513836662337e-13, -1.7941785315068061178e-12, -1.3215811840447713119e-11, -3.1499165279632413645e-11),
    *(1.1889147107846438342e-11, 4.9406023882249695891e-10, 3.3962320257083863452e-9, 2.2666689904981780646e-8),
    *(2.0489185894690637418e-7, 2.891370520834756483e-6, 0.000068897583469168239843, 0.0033691164782556940899),
    0.80449041101410883161,
)
_I1E_F32_COUNTS = (17, 7)  # the last coefficients, which suffice for f32


def _number(value: float, x: Expr) -> Constant:
    return constant(np.asarray(value, x.known_element_type.numpy))


def horner(emit: Emit, x: Expr, coefficients: Sequence[float]) -> Expr:
    """Return the value of a polynomial.   coefficients: the highest power first."""
    total: Expr = ops.add(ops.multiply(x, coefficients[0]), coefficients[1])
    for coefficient in coefficients[2:]:
        total = emit(ops.add(ops.multiply(total, x), coefficient))
    return total


def erf_inv(emit: Emit, x: Expr) -> Expr:
    """Return the inverse error function, by polynomials in -log(1 - x * x)."""
    w = emit(ops.negative(ops.log1p(ops.multiply(x, ops.negative(x)))))
    root = emit(ops.sqrt(w))
    if x.element_type == F64:
        shifted = (ops.subtract(w, 3.125), ops.subtract(root, 3.25), ops.subtract(root, 5.0))
        parts = [horner(emit, emit(x), each) for x, each in zip(shifted, _ERF_INV_F64, strict=True)]
        p = ops.where(ops.less(w, 6.25), parts[0], ops.where(ops.less(w, 16.0), parts[1], parts[2]))
    else:
        near, far = _ERF_INV_F32
        first = horner(emit, emit(ops.subtract(w, 2.5)), near)
        p = ops.where(ops.less(w, 5.0), first, horner(emit, emit(ops.subtract(root, 3.0)), far))
    return ops.where(ops.equal(ops.abs(x), 1.0), ops.multiply(x, math.inf), ops.multiply(p, x))


def _lanczos(emit: Emit, x: Expr) -> tuple[Expr, Expr, Expr, Expr, Expr]:
    """Return whether the reflection formula is needed, then z, t(z), log(t(z)) and a(z) of Lanczos's approximation.

    The approximation is gamma(z + 1) = sqrt(2 pi) t(z)^(z + 1/2) exp(-t(z)) a(z).
    """
    reflects = emit(ops.less(x, 0.5))
    z = emit(ops.where(reflects, ops.negative(x), ops.subtract(x, 1.0)))
    a: Expr = _number(_LANCZOS_BASE, x)
    for k, coefficient in enumerate(_LANCZOS, 1):
        a = emit(ops.add(a, ops.divide(_number(coefficient, x), ops.add(z, float(k)))))
    t = emit(ops.add(z, _LANCZOS_GAMMA + 0.5))
    scaled = ops.log1p(ops.divide(z, _LANCZOS_GAMMA + 0.5))
    log_t = emit(ops.add(scaled, math.log(_LANCZOS_GAMMA + 0.5)))
    return reflects, z, t, log_t, a


def lgamma(emit: Emit, x: Expr) -> Expr:
    """Return the logarithm of the absolute value of the gamma function, by Lanczos's approximation."""
    reflects, z, t, log_t, a = _lanczos(emit, x)
    r = ops.multiply(ops.subtract(ops.add(z, 0.5), ops.divide(t, log_t)), log_t)
    lgamma = emit(ops.add(ops.add(r, (math.log(2) + math.log(math.pi)) / 2), ops.log(a)))
    size = emit(ops.abs(x))
    fraction = emit(ops.subtract(size, ops.floor(size)))
    fraction = ops.where(ops.greater(fraction, 0.5), ops.subtract(1.0, fraction), fraction)
    denominator = emit(ops.log(ops.sin(ops.multiply(fraction, math.pi))))
    reflected = ops.subtract(ops.subtract(math.log(math.pi), denominator), lgamma)
    reflected = ops.where(ops.is_finite(denominator), reflected, ops.negative(denominator))
    result = ops.where(reflects, reflected, lgamma)
    return ops.where(ops.equal(size, math.inf), math.inf, result)


def erfcx(emit: Emit, x: Expr) -> Expr:
    """Return exp(x * x) * erfc(x).   x: a tensor of f64."""
    square = emit(ops.multiply(x, x))
    z = emit(ops.divide(-0.5, square))
    series: Expr = emit(ops.add(ops.multiply(z, 0.0), 1.0))
    for k in range(_ERFCX_TERMS, 0, -1):
        series = emit(ops.add(ops.multiply(ops.multiply(series, z), 2.0 * k - 1), 1.0))
    far = ops.divide(series, ops.multiply(x, math.sqrt(math.pi)))
    return ops.where(ops.less(x, _ERFCX_FAR), ops.multiply(ops.exp(square), ops.erfc(x)), far)


_ERFCX_FAR = 10.0  # above, the asymptotic series is exact to 16 digits
_ERFCX_TERMS = 10


def digamma(emit: Emit, x: Expr) -> Expr:
    """Return the derivative of `lgamma`, by Lanczos's approximation.  It is NaN at the poles."""
    reflects, z, t, log_t, a = _lanczos(emit, x)
    slope: Expr = _number(0.0, x)
    for k, coefficient in enumerate(_LANCZOS, 1):
        term = emit(ops.add(z, float(k)))
        slope = emit(ops.subtract(slope, ops.divide(_number(coefficient, x), ops.multiply(term, term))))
    digamma = emit(ops.subtract(ops.add(log_t, ops.divide(slope, a)), ops.divide(_number(_LANCZOS_GAMMA, x), t)))
    reduced = ops.add(x, ops.abs(ops.floor(ops.add(x, 0.5))))
    angle = emit(ops.multiply(reduced, math.pi))
    reflected = ops.subtract(digamma, ops.divide(ops.multiply(ops.cos(angle), math.pi), ops.sin(angle)))
    result = ops.where(reflects, reflected, digamma)
    is_pole = ops.logical_and(ops.less_equal(x, 0.0), ops.equal(x, ops.floor(x)))
    return ops.where(is_pole, math.nan, result)


def bessel_i1e(emit: Emit, x: Expr) -> Expr:
    """Return exp(-|x|) * I1(x), for the modified Bessel function I1 of the first kind."""
    small: Sequence[float] = _I1E_SMALL
    large: Sequence[float] = _I1E_LARGE
    if x.element_type != F64:
        small, large = small[-_I1E_F32_COUNTS[0] :], large[-_I1E_F32_COUNTS[1] :]
    z = emit(ops.abs(x))
    near = ops.multiply(chebyshev(emit, emit(ops.subtract(ops.multiply(z, 0.5), 2.0)), small), z)
    ratio = ops.divide(_number(32.0, x), z)
    far = ops.divide(chebyshev(emit, emit(ops.subtract(ratio, 2.0)), large), ops.sqrt(z))
    return ops.multiply(ops.sign(x), ops.where(ops.less_equal(z, 8.0), near, far))


def bessel_i0e(emit: Emit, x: Expr) -> Expr:
    """Return exp(-|x|) * I0(x), for the modified Bessel function I0 of the first kind."""
    z = emit(ops.abs(x))
    near = chebyshev(emit, emit(ops.subtract(ops.multiply(z, 0.5), 2.0)), _I0E_SMALL)
    ratio = ops.divide(_number(32.0, x), z)
    far = ops.divide(chebyshev(emit, emit(ops.subtract(ratio, 2.0)), _I0E_LARGE), ops.sqrt(z))
    return ops.where(ops.less_equal(z, 8.0), near, far)


# The coefficients of the Euler-Maclaurin series, (2 k)! / B(2 k) for the Bernoulli numbers B.
_ZETA = (
    *(12.0, -720.0, 30240.0, -1209600.0, 47900160.0, -1892437580.3183791, 74724249600.0, -2950130727918.1642),
    *(116467828143500.67, -4597978722407472.6, 1.8152105401943547e17, -7.1661652561756672e18),
)
_ZETA_TERMS = 10  # the number of terms that are added one by one


def hurwitz_zeta(emit: Emit, s: Expr, q: Expr) -> Expr:
    """Return the sum of (q + k) ** -s over k = 0, 1, 2..., for s > 1 and q > 0, by the Euler-Maclaurin formula.

    Source: Cephes, zeta.c.
    """
    total: Expr = ops.power(q, ops.negative(s))
    for k in range(1, _ZETA_TERMS):
        total = emit(ops.add(total, ops.power(ops.add(q, float(k)), ops.negative(s))))
    last = emit(ops.add(q, float(_ZETA_TERMS)))
    power = emit(ops.power(last, ops.negative(s)))
    total = emit(ops.add(total, ops.divide(ops.multiply(power, last), ops.subtract(s, 1.0))))
    total = emit(ops.add(total, ops.multiply(power, 0.5)))
    factor: Expr = emit(ops.divide(ops.multiply(power, s), last))
    for k, coefficient in enumerate(_ZETA):
        total = emit(ops.add(total, ops.divide(factor, coefficient)))
        step = ops.multiply(ops.add(s, 2.0 * k + 1), ops.add(s, 2.0 * k + 2))
        factor = emit(ops.divide(ops.multiply(factor, step), ops.multiply(last, last)))
    return total


def zeta(emit: Emit, s: Expr, q: Expr) -> Expr:
    """Return the Hurwitz zeta function of f64 tensors.

    The result is infinite at the poles, where q is 0 or a negative integer, and less exact at other negative q.
    """
    found = emit(hurwitz_zeta(emit, s, q))
    is_whole = ops.equal(q, ops.floor(q))
    beside = ops.where(ops.equal(s, ops.floor(s)), found, math.nan)
    found = ops.where(ops.less_equal(q, 0.0), ops.where(is_whole, math.inf, beside), found)
    found = ops.where(ops.equal(s, 1.0), math.inf, found)
    return ops.where(ops.less(s, 1.0), math.nan, found)


def chebyshev(emit: Emit, x: Expr, coefficients: Sequence[float]) -> Expr:
    """Return c_0 / 2 + sum of c_k T_k(x / 2), by Clenshaw's recurrence.

    coefficients: c_k, in descending order of k.
    Source: chbevl of the Cephes library.
    """
    before: Expr = ops.multiply(x, 0.0)
    last = current = before
    for coefficient in coefficients:
        before, last = last, current
        current = emit(ops.add(ops.subtract(ops.multiply(x, last), before), coefficient))
    return ops.multiply(ops.subtract(current, before), 0.5)
